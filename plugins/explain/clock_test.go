package explain

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

// TestWrongClock: with a local clock that is an hour ahead, or behind, a sync of
// a moment ago is explained as that: the server says what time it is.
func TestWrongClock(t *testing.T) {
	for name, wrong := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "clock-"+name, apiserver.Admin)
			w.prometheus = func(out http.ResponseWriter, _ *http.Request) { fmt.Fprint(out, vector("9")) }
			w.addAll(t, []service{steady("fine", 0)})
			// To the reader the server is as far behind as its clock is ahead.
			direct := w.transport
			w.transport = roundTripper(func(r *http.Request) (*http.Response, error) {
				response, err := direct.RoundTrip(r)
				if err == nil {
					response.Header.Set("Date", time.Now().Add(-wrong).UTC().Format(http.TimeFormat))
				}
				return response, err
			})
			document := w.explain(t, "so/fine", "--fresh")
			// The clock of tests is a minute late.
			want := later().Add(-wrong)
			if off := document.AsOf.Time.Sub(want); off.Abs() > 5*time.Second || document.AsOf.SlackSeconds > 30 {
				t.Errorf("as of %v, off by %v; %+v", document.AsOf.Time, off, document.AsOf)
			}
			if got := document.Chains[0].Now.ReadAt.Sub(want); got.Abs() > 5*time.Second {
				t.Errorf("the values are said to be of %v", document.Chains[0].Now.ReadAt)
			}
			_, stderr, err := w.run(t, "so/fine")
			if err != nil || !strings.Contains(stderr, "warning: this machine's clock is 1h0m0s "+name) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("got %q, %v", stderr, err)
			}
			_, stderr, err = w.run(t)
			if err != nil || !strings.Contains(stderr, "the server's time is taken") {
				t.Errorf("scan: got %q, %v", stderr, err)
			}
		})
	}
}
