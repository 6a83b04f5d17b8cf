package bench

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/workload"
	"github.com/kubectl-inference/kubectl-inference/jobs/openai"
)

// What the lengths of prompts rest on.
const (
	byTokenIDs = "token_ids"
	byTokenize = "tokenize"
	byUsage    = "usage"
)

// prompts says how prompts of a wanted length are written.
type prompts struct {
	by   string
	text bool
	// words are one token each; template is the number of tokens around them.
	words    workload.Words
	template int
}

func (p prompts) exact() bool { return p.by != byUsage }

// The numbers of words by which /tokenize is asked: two, so that what a word
// adds is told apart from what the template adds.
const (
	fewWords, manyWords     = 16, 48
	leastWords, enoughWords = 16, 48
)

// choosePrompts finds out how prompts of exact lengths are written for this
// server, and sends the first request.
func (r *run) choosePrompts(ctx context.Context) (*openai.Reply, error) {
	r.prompts = prompts{by: byTokenIDs}
	if r.plan.Target.API == record.APIChat {
		return r.chooseText(ctx)
	}
	reply := r.firstRequest(ctx)
	if reply.Status == http.StatusBadRequest || reply.Status == http.StatusUnprocessableEntity {
		// Perhaps it takes no token ids; if text is refused too, that is not why.
		if asText, err := r.chooseText(ctx); err == nil {
			return asText, nil
		}
	}
	if err := r.client.Check(reply, r.model); err != nil {
		return reply, err
	}
	if reply.PromptTokens >= 0 && reply.PromptTokens != probeTokens {
		return reply, failure.New(failure.Usage, "the server must take token ids as a prompt, or use the chat API",
			"check prompt length: the server counts %d tokens where %d were sent", reply.PromptTokens, probeTokens)
	}
	return reply, nil
}

func (r *run) chooseText(ctx context.Context) (*openai.Reply, error) {
	words, template, known, err := r.countedWords(ctx)
	if err != nil {
		return &openai.Reply{}, err
	}
	r.prompts = prompts{by: byTokenize, text: true, words: words, template: template}
	if !known {
		r.prompts = prompts{by: byUsage, text: true, words: workload.CommonWords()}
	}
	sent := probeTokens - r.prompts.template
	reply := r.firstRequest(ctx)
	if err := r.client.Check(reply, r.model); err != nil {
		return reply, err
	}
	if !known && reply.PromptTokens >= 0 {
		r.prompts.template = max(reply.PromptTokens-max(sent, 0), 0)
	}
	for _, c := range r.shapes() {
		if shortest := c.Mix().Shortest(); shortest <= r.prompts.template {
			return reply, failure.New(failure.Usage, "ask for longer prompts, or use --api completions",
				"check case %q: of its %d prompt tokens, the server's chat template takes %d", c.Name, shortest, r.prompts.template)
		}
	}
	return reply, nil
}

// firstRequest sends one request that is not measured.
func (r *run) firstRequest(ctx context.Context) *openai.Reply {
	prompt := r.request(workload.Prompt{{ID: workload.NewID(0, setProbe, 0), Tokens: probeTokens}}, 1)
	return r.client.Do(ctx, r.plan.Target.API, prompt.Body(), nil)
}

// countedWords are words that the server counts as one token each, and what it
// adds to them; known is false where it does not count for us.
func (r *run) countedWords(ctx context.Context) (words workload.Words, template int, known bool, err error) {
	count := func(text string) (int, error) {
		n, ok, err := r.client.CountTokens(ctx, r.plan.Target.API, r.model, text)
		known = ok
		return n, err
	}
	first := true
	for _, word := range workload.CommonWords() {
		few, err := count(strings.Repeat(" "+word, fewWords))
		if err != nil || !known {
			return nil, 0, false, err
		}
		if !first && few != template+fewWords {
			continue
		}
		many, err := count(strings.Repeat(" "+word, manyWords))
		if err != nil || !known {
			return nil, 0, false, err
		}
		if many-few != manyWords-fewWords {
			continue
		}
		if first {
			first, template = false, few-fewWords
		}
		if words = append(words, word); len(words) == enoughWords {
			break
		}
	}
	if len(words) < leastWords {
		return nil, 0, false, nil
	}
	// Words beside one another may merge where a word beside itself does not.
	for place := range uint64(3) {
		text := words.Text(r.seed, workload.NewID(0, setProbe, 1+place), 200)
		if n, err := count(text); err != nil || !known || n != template+200 {
			return nil, 0, false, err
		}
	}
	return words, template, true, nil
}

// pathLine says for people how far away the server is.
func pathLine(path record.PathPhases) string {
	var line strings.Builder
	for _, one := range []struct {
		name  string
		value *float64
	}{{"dns", path.DNS}, {"connect", path.Connect}, {"tls", path.TLS}, {"wait", path.Wait}} {
		if one.value != nil {
			fmt.Fprintf(&line, ", %s %.3g ms", one.name, 1000**one.value)
		}
	}
	return line.String()
}
