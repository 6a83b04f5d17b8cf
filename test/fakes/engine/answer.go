package engine

import (
	"fmt"
	"math"
	"net/http"

	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine/token"
)

// answer is one request being answered, of either API.
type answer struct {
	engine  *Engine
	dialect dialect
	request apiRequest
	fault   Fault
	jobs    []*job
	id      string
	created int64
	model   string
	// reasoning is the number of leading tokens sent as reasoning.
	reasoning int
}

func (e *Engine) complete(w http.ResponseWriter, r *http.Request) {
	a := &answer{dialect: completionDialect{}}
	e.serve(w, r, a, func() ([][]int32, int, *apiError) {
		prompts, err := parsePrompt(a.request.Prompt)
		return prompts, completionDefault, err
	})
}

func (e *Engine) chat(w http.ResponseWriter, r *http.Request) {
	a := &answer{dialect: chatDialect{}, reasoning: e.config.ReasoningTokens}
	e.serve(w, r, a, func() ([][]int32, int, *apiError) {
		if len(a.request.Messages) == 0 {
			return nil, 0, badRequest("messages", "messages must hold at least one message")
		}
		return [][]int32{token.Chat(messages(a.request.Messages))}, math.MaxInt32, nil
	})
}

func messages(in []apiMessage) []token.Message {
	out := make([]token.Message, len(in))
	for i, m := range in {
		out[i] = token.Message{Role: m.Role, Content: string(m.Content)}
	}
	return out
}

// serve does what both APIs share. Prompts returns the prompts and the default output limit.
func (e *Engine) serve(w http.ResponseWriter, r *http.Request, a *answer, prompts func() ([][]int32, int, *apiError)) {
	if err := decode(w, r, &a.request); err != nil {
		writeError(w, err)
		return
	}
	if err := e.checkModel(a.request.Model); err != nil {
		writeError(w, err)
		return
	}
	fault, err := e.fault(r)
	if err != nil {
		writeError(w, err)
		return
	}
	if fault.before(w, r, e.done) {
		return
	}
	ids, fallback, err := prompts()
	if err != nil {
		writeError(w, err)
		return
	}
	jobs, err := e.newJobs(&a.request, ids, fallback)
	if err != nil {
		writeError(w, err)
		return
	}
	a.engine, a.fault, a.jobs = e, fault, jobs
	a.id = a.dialect.prefix() + e.requestID(r)
	a.created = e.config.Clock.Now().Unix()
	a.model = e.config.Names[0]
	if fault.ReasoningTokens > 0 {
		a.reasoning = fault.ReasoningTokens
	}

	for _, j := range jobs {
		// Nobody needs to hear of each token of an answer in one piece.
		j.quiet = !a.request.Stream && fault.stopsAt() == 0
	}
	e.submit(jobs)
	respond := a.plain
	if a.request.Stream {
		respond = a.stream
	}
	if !respond(w, r) {
		e.abort(jobs)
	}
}

// requestID is the caller's, or a number.
func (e *Engine) requestID(r *http.Request) string {
	if id := r.Header.Get("X-Request-Id"); id != "" && len(id) <= 128 {
		return id
	}
	return fmt.Sprintf("%032x", e.serial.Add(1))
}

// wait blocks until a job has something new. It returns false when the client or the engine has gone.
func (a *answer) wait(r *http.Request) bool {
	select {
	case <-a.jobs[0].bell:
		return true
	case <-r.Context().Done():
		return false
	case <-a.engine.done:
		return false
	}
}

// usage counts the tokens of a request.
type usage struct {
	PromptTokens        int            `json:"prompt_tokens"`
	TotalTokens         int            `json:"total_tokens"`
	CompletionTokens    int            `json:"completion_tokens"`
	PromptTokensDetails *promptDetails `json:"prompt_tokens_details,omitempty"`
}

type promptDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

// usage sums up the jobs; the prompt of several choices counts once.
func (a *answer) usage() usage {
	var u usage
	cached, n := 0, a.choicesPerPrompt()
	for i, j := range a.jobs {
		if i%n == 0 {
			u.PromptTokens += len(j.request.Prompt)
			cached += int(j.cached.Load())
		}
		u.CompletionTokens += int(max(0, j.produced.Load()))
	}
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	if !a.engine.config.HideCachedTokens {
		u.PromptTokensDetails = &promptDetails{cached}
	}
	return u
}

func (a *answer) choicesPerPrompt() int {
	if a.request.N != nil {
		return *a.request.N
	}
	return 1
}

// plain answers in one piece.
func (a *answer) plain(w http.ResponseWriter, r *http.Request) (complete bool) {
	for _, j := range a.jobs {
		for int(j.produced.Load()) < j.request.Output {
			if j.produced.Load() == failed {
				writeError(w, &apiError{status: http.StatusInternalServerError, message: "EngineCore refused the request"})
				return false
			}
			if !a.wait(r) {
				return false
			}
			if a.fault.stops(int(a.jobs[0].produced.Load())) {
				a.fault.breakPlain(w, r, a.engine.done)
				return false
			}
		}
	}
	writeJSON(w, http.StatusOK, a.dialect.whole(a))
	return true
}

// text returns the output tokens from first up to limit as text.
func (j *job) text(b []byte, first, limit int) []byte {
	for i := first; i < limit; i++ {
		// Generated tokens are in the vocabulary.
		b, _ = token.AppendText(b, token.Generated(j.seed, i))
	}
	return b
}
