package bench

import (
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// requestRecord is an observation as a document, with times after base.
func requestRecord(o observation, c record.BenchCase, base time.Time) record.RequestRecord {
	reply := o.reply
	after := func(t time.Time) *float64 {
		if t.IsZero() {
			return nil
		}
		return ptr(micro(t.Sub(base)))
	}
	known := func(n int) *int {
		if n < 0 {
			return nil
		}
		return &n
	}
	tokens, estimated := outputTokens(o)
	one := record.RequestRecord{
		Case: c.Name, ID: uint64(o.id), Phase: o.phase, Turn: o.turn, HeldBack: o.heldBack,
		Due: micro(o.due.Sub(base)), Sent: micro(reply.Sent.Sub(base)),
		Resolved: after(reply.Resolved), Dialed: after(reply.Dialed), Secured: after(reply.Secured),
		Connected: after(reply.Connected), Wrote: after(reply.Wrote), Header: after(reply.Header),
		FirstToken: after(reply.FirstToken), FirstOutput: after(reply.FirstOutput), LastToken: after(reply.LastToken),
		End: micro(reply.End().Sub(base)), EOF: after(reply.EOF), ReusedConn: reply.ReusedConn,
		PromptAsked: o.prompt, PromptTokens: known(reply.PromptTokens), CachedTokens: known(reply.CachedTokens),
		OutputAsked: o.output, OutputTokens: tokens, TokensEstimated: estimated,
		Chunks: reply.Chunks, FirstTokens: max(reply.FirstTokens, min(reply.Chunks, 1)),
		Gaps: make([]int64, len(reply.Gaps)), Flags: append([]string{}, reply.Flags...),
		Status: reply.Status, Error: reply.Class, ErrorCode: reply.Code, Message: reply.Message, Body: reply.Body,
		FinishReason: reply.FinishReason,
	}
	var stall time.Duration
	for i, gap := range reply.Gaps {
		one.Gaps[i] = gap.Microseconds()
		stall = max(stall, gap)
	}
	if len(reply.Gaps) > 0 {
		one.MaxStall = ptr(micro(stall))
	}
	if !reply.FirstToken.IsZero() {
		one.TTFT = ptr(micro(reply.FirstToken.Sub(reply.Sent)))
	}
	if one.Succeeded() {
		one.E2E = ptr(micro(reply.End().Sub(reply.Sent)))
		if tpot, ok := reply.TPOT(tokens); ok {
			one.TPOT = ptr(tpot.Seconds())
		}
	}
	return one
}

// outputTokens is the server's count, else that of the token-bearing chunks.
func outputTokens(o observation) (n int, estimated bool) {
	if o.reply.OutputTokens >= 0 {
		return o.reply.OutputTokens, false
	}
	return o.reply.Chunks, o.reply.Chunks > 0
}

// micro is a duration in seconds, in whole microseconds.
func micro(d time.Duration) float64 { return float64(d.Microseconds()) / 1e6 }
