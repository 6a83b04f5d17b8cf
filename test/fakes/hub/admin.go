package hub

import (
	"encoding/json"
	"net/http"
)

// admin serves the switches to programs: POST a Fault to /_fake/faults, DELETE
// them, GET /_fake/stats, and GET /_fake/commits for the commit ids.
func (h *Hub) admin(mux *http.ServeMux) {
	mux.HandleFunc("POST /_fake/faults", func(w http.ResponseWriter, r *http.Request) {
		var fault Fault
		decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&fault); err != nil || fault.Kind == "" {
			refuse(w, http.StatusBadRequest, "", "the body is not a fault")
			return
		}
		h.Inject(fault)
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("DELETE /_fake/faults", func(w http.ResponseWriter, _ *http.Request) {
		h.Clear()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /_fake/stats", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, h.Stats()) })
	mux.HandleFunc("GET /_fake/commits", func(w http.ResponseWriter, _ *http.Request) {
		commits := make(map[string]map[string]string)
		for name, refs := range h.repos {
			commits[name] = make(map[string]string)
			for ref, commit := range refs {
				if ref != commit.sha {
					commits[name][ref] = commit.sha
				}
			}
		}
		answer(w, http.StatusOK, commits)
	})
}
