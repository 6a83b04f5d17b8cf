package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"
)

// KindRequestRecords is the kind of the first line of a file of request records.
const KindRequestRecords = "RequestRecords"

// RequestHeader is the first line of a file of request records: it says what
// the lines after it mean. All times in them are seconds after Started, from a
// monotonic clock.
type RequestHeader struct {
	TypeMeta
	Run         string          `json:"run"`
	ToolVersion string          `json:"tool_version"`
	Started     time.Time       `json:"started"`
	Fields      []RequestColumn `json:"fields"`
}

// RequestColumn describes one field of a RequestRecord.
type RequestColumn struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Meaning string `json:"meaning"`
}

// ErrorClass says where a request failed; empty for success.
type ErrorClass string

// The classes of errors. Status 429 and the classes of other statuses, such as
// http_503, are made by StatusClass.
const (
	ErrorConnect       ErrorClass = "connect"
	ErrorDNS           ErrorClass = "dns"
	ErrorTLS           ErrorClass = "tls"
	ErrorTimeoutHeader ErrorClass = "timeout_header"
	ErrorTimeoutIdle   ErrorClass = "timeout_idle"
	ErrorTimeoutTotal  ErrorClass = "timeout_total"
	ErrorInBand        ErrorClass = "in_band"
	ErrorProtocol      ErrorClass = "protocol"
	ErrorTruncated     ErrorClass = "truncated"
	ErrorShortOutput   ErrorClass = "short_output"
	ErrorCancelled     ErrorClass = "cancelled_by_us"
)

// StatusClass is the class of an HTTP status that is not 200, such as http_503.
func StatusClass(status int) ErrorClass { return ErrorClass(fmt.Sprintf("http_%d", status)) }

// The phases of a RequestRecord.
const (
	PhaseWarmup   = "warmup"
	PhaseMeasured = "measured"
)

// RequestRecord is one request of a run. The tag `about` is the meaning that
// the file's first line states.
type RequestRecord struct {
	Case  string `json:"case" about:"name of the case"`
	ID    uint64 `json:"id" about:"number of the request in the run; it decides the prompt"`
	Phase string `json:"phase" about:"warmup or measured: which set the prompt is from"`
	Turn  int    `json:"turn" about:"place of the request in its session, from 0"`

	Due        float64  `json:"due_seconds" about:"when the request was due: in closed loop, when its slot became free; in a session, the think time after the answer before"`
	Sent       float64  `json:"sent_seconds" about:"just before the request was written"`
	Resolved   *float64 `json:"resolved_seconds" about:"when its server's name was resolved; null on a connection that was there"`
	Dialed     *float64 `json:"dialed_seconds" about:"when TCP was connected; null on a connection that was there"`
	Secured    *float64 `json:"secured_seconds" about:"when the TLS handshake was over; null without one"`
	Connected  *float64 `json:"connected_seconds" about:"when it had a connection"`
	HeldBack   bool     `json:"held_back" about:"open loop: it was sent late, as the limit of requests in flight was reached"`
	Wrote      *float64 `json:"wrote_seconds" about:"when the request was written"`
	Header     *float64 `json:"header_seconds" about:"when the first byte of the response came"`
	FirstToken *float64 `json:"first_token_seconds" about:"first token-bearing chunk"`
	// FirstOutput is later than FirstToken for a model that reasons first.
	FirstOutput *float64 `json:"first_output_seconds" about:"first token-bearing chunk that is not reasoning"`
	LastToken   *float64 `json:"last_token_seconds" about:"last token-bearing chunk"`
	End         float64  `json:"end_seconds" about:"last token or finish reason, whichever is later; for a failed request when it failed"`
	EOF         *float64 `json:"eof_seconds" about:"end of the body"`
	ReusedConn  bool     `json:"reused_connection" about:"the connection served an earlier request"`

	PromptAsked     int  `json:"prompt_tokens_asked" about:"prompt tokens sent"`
	PromptTokens    *int `json:"prompt_tokens" about:"prompt tokens by the server's usage"`
	CachedTokens    *int `json:"cached_tokens" about:"prompt tokens that the server found in its cache, by its usage"`
	OutputAsked     int  `json:"output_tokens_asked" about:"output tokens asked for"`
	OutputTokens    int  `json:"output_tokens" about:"output tokens by the server's usage, else token-bearing chunks"`
	TokensEstimated bool `json:"tokens_estimated" about:"output_tokens counts chunks: the server sent no usage"`
	Chunks          int  `json:"chunks" about:"token-bearing chunks"`
	FirstTokens     int  `json:"first_chunk_tokens" about:"tokens of the first chunk; 1 where unknown"`

	TTFT     *float64 `json:"ttft_seconds" about:"first_token - sent"`
	TPOT     *float64 `json:"tpot_seconds" about:"(last_token - first_token) / (output_tokens - first_chunk_tokens); null where that divides by less than 1"`
	E2E      *float64 `json:"e2e_seconds" about:"end - sent; null for a failed request"`
	MaxStall *float64 `json:"max_stall_seconds" about:"longest gap of two chunks"`
	// Gaps are whole microseconds, so that a file of many requests stays small.
	Gaps []int64 `json:"gaps_us" about:"gaps of consecutive token-bearing chunks in microseconds; first_token + their sum is last_token"`

	Status       int        `json:"status" about:"HTTP status; 0 without a response"`
	Error        ErrorClass `json:"error" about:"class of the error; empty for success"`
	ErrorCode    string     `json:"error_code" about:"code that the server's in-band error states"`
	Message      string     `json:"message" about:"what went wrong"`
	Body         string     `json:"body" about:"first 2 KiB of a failed request's response body"`
	FinishReason string     `json:"finish_reason" about:"finish_reason of choice 0"`
	Flags        []string   `json:"flags" about:"what was unusual: no_done, buffered"`
}

// Succeeded says whether the request got its whole answer.
func (r RequestRecord) Succeeded() bool { return r.Error == "" }

// NewRequestHeader makes the first line of a file of request records.
func NewRequestHeader(run, toolVersion string, started time.Time) RequestHeader {
	header := RequestHeader{TypeMeta: Meta(KindRequestRecords), Run: run, ToolVersion: toolVersion, Started: started.UTC(), Fields: []RequestColumn{}}
	for field := range reflect.TypeFor[RequestRecord]().Fields() {
		kind := field.Type
		null := ""
		if kind.Kind() == reflect.Pointer {
			kind, null = kind.Elem(), " or null"
		}
		name := map[reflect.Kind]string{
			reflect.Int: "integer", reflect.Uint64: "integer", reflect.Float64: "number",
			reflect.String: "string", reflect.Bool: "boolean", reflect.Slice: "array",
		}[kind.Kind()]
		header.Fields = append(header.Fields, RequestColumn{
			Name: strings.Split(field.Tag.Get("json"), ",")[0], Type: name + null, Meaning: field.Tag.Get("about"),
		})
	}
	return header
}

// ReadRequests reads a file of request records. A last line that was cut off,
// as by a process that was killed, is left out.
func ReadRequests(r io.Reader) (RequestHeader, []RequestRecord, error) {
	reader := bufio.NewReader(r)
	var header RequestHeader
	records := []RequestRecord{}
	for number := 1; ; number++ {
		line, err := reader.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return header, records, fmt.Errorf("read request records: line %d: %w", number, err)
		}
		cut := err != nil
		line = bytes.TrimSpace(line)
		switch {
		case number == 1:
			if err := Decode(line, KindRequestRecords, &header); err != nil {
				return header, records, err
			}
		case len(line) > 0:
			var record RequestRecord
			if err := json.Unmarshal(line, &record); err != nil {
				if cut {
					return header, records, nil
				}
				return header, records, fmt.Errorf("read request records: line %d: %w", number, err)
			}
			records = append(records, record)
		}
		if cut {
			return header, records, nil
		}
	}
}
