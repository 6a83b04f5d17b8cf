package openai

import (
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// readBuffer holds the events of one read. A larger one gains nothing: the
// transport reads into a buffer of 4 KiB.
const readBuffer = 4 << 10

// stream reads an event stream to its end. Every event of one read has that
// read's time: they were there together.
func (r *replyReader) stream() {
	buffer := make([]byte, readBuffer)
	for {
		n, err := r.body.Read(buffer)
		r.now = r.client.Now()
		if n > 0 {
			r.keep(buffer[:n])
			r.readTokens = 0
			if parseErr := r.parser.feed(buffer[:n], r.event); parseErr != nil {
				r.reply.fail(r.now, record.ErrorProtocol, "", parseErr.Error())
				return
			}
			if r.readTokens > 0 {
				r.reads++
			}
			if err == nil && !r.sawDone {
				r.limits.readCame()
			}
		}
		if err == nil {
			continue
		}
		if errors.Is(err, io.EOF) {
			r.reply.EOF = r.now
			r.ended()
		} else {
			r.broken(err)
		}
		r.finish()
		return
	}
}

// ended judges a stream whose body ended as HTTP says.
func (r *replyReader) ended() {
	switch finished := r.reply.FinishReason != ""; {
	case finished && !r.sawDone:
		r.reply.Flags = append(r.reply.Flags, FlagNoDone)
	case !finished && r.sawDone:
		r.reply.Flags = append(r.reply.Flags, FlagNoFinish)
	case !finished:
		r.reply.fail(r.now, record.ErrorTruncated, "", "the stream ended before finish_reason and [DONE]")
	}
}

// finish completes what follows from all chunks together.
func (r *replyReader) finish() {
	reply := r.reply
	if r.burst() {
		reply.Flags = append(reply.Flags, FlagBuffered)
	}
	if reply.OutputTokens < 0 && r.byID && r.counted {
		reply.OutputTokens = r.tokensSeen
	}
	if !r.counted {
		reply.GapTokens, reply.FirstTokens = nil, 0
	}
}

// burstGap is less than any engine takes for a token. A burst takes several
// reads where it is longer than a read.
const burstGap = 50 * time.Microsecond

// burst says whether all token-bearing chunks came at once.
func (r *replyReader) burst() bool {
	gaps := r.reply.Chunks - 1
	return gaps > 0 && (r.reads == 1 || r.reply.LastToken.Sub(r.reply.FirstToken) < time.Duration(gaps)*burstGap)
}

var done = []byte("[DONE]")

// event takes one event of the stream.
func (r *replyReader) event(event, data []byte) {
	data = bytes.TrimSpace(data)
	switch {
	case len(data) == 0 || r.sawDone || r.reply.Class != "":
		return
	case bytes.Equal(data, done):
		r.sawDone = true
		r.limits.done()
		return
	}
	if err := parseChunk(data, &r.chunk); err != nil {
		r.reply.fail(r.now, record.ErrorProtocol, "", "an event is "+err.Error())
		return
	}
	if r.chunk.fault == nil && string(event) == "error" {
		r.chunk.fault = &fault{message: string(data)}
	}
	if f := r.chunk.fault; f != nil {
		r.reply.fail(r.now, record.ErrorInBand, f.code, failure.Clean(f.message))
		return
	}
	if r.chunk.hasOutput() || r.chunk.hasReasoning() {
		r.token()
	}
	r.usage()
	if r.chunk.finish != nil {
		r.reply.Finish = r.now
		r.reply.FinishReason = string(unquote(r.chunk.finish))
	}
}

// token takes a token-bearing chunk.
func (r *replyReader) token() {
	reply := r.reply
	tokens := r.chunkTokens()
	r.readTokens++
	reply.Chunks++
	if reply.Chunks == 1 {
		reply.FirstToken, reply.FirstTokens = r.now, tokens
		if r.onToken != nil {
			r.onToken(r.now)
		}
	} else {
		// A clock never runs backwards, so equal stamps give 0 and no less.
		reply.Gaps = append(reply.Gaps, max(r.now.Sub(reply.LastToken), 0))
		if r.counted {
			reply.GapTokens = append(reply.GapTokens, tokens)
		}
	}
	reply.LastToken = r.now
	if reply.FirstOutput.IsZero() && r.chunk.hasOutput() {
		reply.FirstOutput = r.now
	}
}

// chunkTokens is the number of tokens in the chunk, by continuous usage or by
// its token ids; counted ends once a chunk states neither.
func (r *replyReader) chunkTokens() int {
	n := 0
	switch {
	case r.chunk.usage.completion >= 0:
		n = r.chunk.usage.completion - r.tokensSeen
	case r.chunk.tokenIDs >= 0:
		n, r.byID = r.chunk.tokenIDs, true
	}
	if n < 1 {
		r.counted = false
		return 0
	}
	r.tokensSeen += n
	return n
}

// usage takes the server's counts; the last word counts.
func (r *replyReader) usage() {
	for _, one := range []struct {
		from int
		to   *int
	}{
		{r.chunk.usage.prompt, &r.reply.PromptTokens},
		{r.chunk.usage.completion, &r.reply.OutputTokens},
		{r.chunk.usage.cached, &r.reply.CachedTokens},
	} {
		if one.from >= 0 {
			*one.to = one.from
		}
	}
}

// TPOT is the time per output token after the first chunk: (last token - first
// token) / (n - tokens of the first chunk), where 1 stands for an unknown first
// chunk. ok is false where that divides by less than 1.
func (r *Reply) TPOT(n int) (tpot time.Duration, ok bool) {
	rest := n - max(r.FirstTokens, 1)
	if rest < 1 || r.FirstToken.IsZero() {
		return 0, false
	}
	return r.LastToken.Sub(r.FirstToken) / time.Duration(rest), true
}
