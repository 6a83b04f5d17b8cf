package failure_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

func TestExitCode(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want int
	}{
		"nothing":           {nil, 0},
		"plain":             {errors.New("x"), 1},
		"usage":             {failure.New(failure.Usage, "", "x"), 2},
		"wrapped":           {fmt.Errorf("outer: %w", failure.New(failure.NotFound, "", "x")), 5},
		"wrapped by Wrap":   {failure.Wrap(failure.New(failure.Denied, "", "x"), "read %s", "y"), 4},
		"cancelled":         {fmt.Errorf("wait: %w", context.Canceled), 130},
		"deadline":          {fmt.Errorf("wait: %w", context.DeadlineExceeded), 124},
		"kind over context": {failure.New(failure.Unreachable, "", "dial: %w", context.DeadlineExceeded), 6},
	} {
		t.Run(name, func(t *testing.T) {
			if got := failure.ExitCode(test.err); got != test.want {
				t.Errorf("ExitCode = %d, want %d", got, test.want)
			}
		})
	}
}

func TestText(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"no hint": {errors.New("read file: no such file"), "error: read file: no such file\n"},
		"two hints": {
			failure.Wrap(failure.New(failure.NotFound, "first\nsecond", "no such bucket"), "open s3://a"),
			"error: open s3://a: no such bucket\nhint: first\nhint: second\n",
		},
		"hostile": {
			failure.New(failure.Failed, "try \x1b[2Jthis", "server said \x1b]0;owned\x07 \u202eabc\r\nerror: forged"),
			"error: server said ]0;owned abc error: forged\nhint: try [2Jthis\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, failure.Text(test.err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCleanKeepsWords(t *testing.T) {
	want := "größe 模型 ok"
	if got := failure.Clean("  größe\t模型\n\x00ok  "); got != want {
		t.Errorf("Clean = %q, want %q", got, want)
	}
}
