package engine

import (
	"bytes"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Version is what /version answers: the release whose wire this engine follows.
const Version = "0.25.1"

func (e *Engine) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/completions", e.counted("/v1/completions", e.guarded(e.complete)))
	mux.HandleFunc("POST /v1/chat/completions", e.counted("/v1/chat/completions", e.guarded(e.chat)))
	mux.HandleFunc("GET /v1/models", e.counted("/v1/models", e.guarded(e.models)))
	mux.HandleFunc("POST /tokenize", e.counted("/tokenize", e.tokenize))
	mux.HandleFunc("POST /detokenize", e.counted("/detokenize", e.detokenize))
	// Probes and metrics are not counted, so that they do not drown the traffic.
	mux.HandleFunc("GET /health", empty)
	mux.HandleFunc("GET /ping", empty)
	mux.HandleFunc("POST /ping", empty)
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"version": Version})
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(e.config.Registry, promhttp.HandlerOpts{}))
	if e.config.Admin {
		e.adminRoutes(mux)
	}
	return mux
}

func empty(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

// guarded demands an API key, if there are any. As in vLLM, only paths below /v1 are guarded.
func (e *Engine) guarded(next http.HandlerFunc) http.HandlerFunc {
	if len(e.config.APIKeys) == 0 {
		return next
	}
	return func(w http.ResponseWriter, r *http.Request) {
		got, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		for _, key := range e.config.APIKeys {
			if subtle.ConstantTimeCompare([]byte(got), []byte(key)) == 1 {
				next(w, r)
				return
			}
		}
		writeJSON(w, http.StatusUnauthorized, map[string]string{"error": "Unauthorized"})
	}
}

// counted counts a request in http_requests_total when it has been answered.
func (e *Engine) counted(handler string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		next(s, r)
		class := strconv.Itoa(s.status/100) + "xx"
		e.metrics.http.WithLabelValues(handler, r.Method, class).Inc()
	}
}

// statusWriter remembers the status code.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// apiError is an error that the caller of the API sees, in vLLM's form.
type apiError struct {
	status  int
	message string
	param   string
}

func (e *apiError) Error() string { return e.message }

func badRequest(param, message string) *apiError {
	return &apiError{status: http.StatusBadRequest, message: message, param: param}
}

// errorBody is the JSON of an error.
type errorBody struct {
	Error errorInfo `json:"error"`
}

type errorInfo struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    int     `json:"code"`
}

// errorType is the name that vLLM gives to a status code.
func errorType(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "BadRequestError"
	case http.StatusNotFound:
		return "NotFoundError"
	case http.StatusTooManyRequests:
		return "RateLimitError"
	case http.StatusServiceUnavailable:
		return "ServiceUnavailableError"
	default:
		return "InternalServerError"
	}
}

func newErrorBody(status int, message, param string) errorBody {
	info := errorInfo{Message: message, Type: errorType(status), Code: status}
	if param != "" {
		info.Param = &param
	}
	return errorBody{info}
}

func writeError(w http.ResponseWriter, err *apiError) {
	writeJSON(w, err.status, newErrorBody(err.status, err.message, err.param))
}

// writeJSON answers with a value. An error here is a client that has gone, which nobody can be told.
func writeJSON(w http.ResponseWriter, status int, v any) {
	body := marshal(v)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// marshal is JSON as Python writes it, that is without escaping what only matters within HTML. The values are strings
// and structs of this package, which always marshal.
func marshal(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
