package sync

import (
	"context"
	"errors"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/hub"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

// explain makes of any error the one that a user meets: what failed, of which
// kind it is, and what mends it.
func explain(err error, plan record.SyncPlan, inJob bool) error {
	var known *failure.Error
	var fromHub *hub.Error
	var fromStore *store.Error
	var wrong *mismatch
	var bad *unsound
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &fromHub):
		return explainHub(fromHub, plan, inJob)
	case errors.As(err, &fromStore):
		return store.Explain(fromStore)
	case errors.As(err, &wrong):
		return failure.New(failure.Failed, "the Hub or a cache on the way to it serves wrong bytes; try again later, or another --hub-endpoint",
			"verify %s: %w, after %d attempts", plan.Repo, err, fileAttempts)
	case errors.As(err, &bad):
		return failure.New(failure.Usage, "the file is like that in the repository; leave it out with --exclude, or choose another revision",
			"check %s: %w", plan.Repo, err)
	}
	return failure.New(failure.Failed, "", "sync %s: %w", plan.Repo, err)
}

func explainHub(problem *hub.Error, plan record.SyncPlan, inJob bool) error {
	token, network := "set HF_TOKEN to", "check --hub-endpoint, DNS, and HTTPS_PROXY and NO_PROXY"
	if inJob {
		token, network = "give --hub-secret NAME, a Secret whose key HF_TOKEN holds", "check --hub-endpoint, the cluster's DNS and network policies, and --proxy"
	}
	endpoint := plan.HubEndpoint
	if endpoint == "" {
		endpoint = hub.DefaultEndpoint
	}
	page := endpoint + "/" + plan.Repo
	read := func(kind failure.Kind, hint, what string) error {
		return failure.New(kind, hint, "read model %s: %s: %w", plan.Repo, what, problem)
	}
	switch problem.Class {
	case hub.NoRevision:
		return failure.New(failure.NotFound, "the branches and tags are at "+page+"/tree/main; a commit may have been removed by a force push",
			"read model %s: it has no revision %q: %w", plan.Repo, plan.Revision, problem)
	case hub.NoEntry:
		return read(failure.NotFound, "", "a listed file is not there")
	case hub.NoRepository:
		if problem.LoggedIn {
			return read(failure.NotFound, "check the name; if the model is private, "+token+" a token of a user who may read it",
				"it does not exist, or it is private and the token may not read it")
		}
		return read(failure.NotFound, "check the name; if the model is private or gated, "+token+" a token of a user who may read it", "it does not exist, or it needs a token")
	case hub.Gated:
		if problem.LoggedIn {
			return read(failure.Denied, "accept the licence at "+page+" with the account of the token, then run it again", "the licence was not accepted")
		}
		return read(failure.Denied, "accept the licence at "+page+" and "+token+" a token of that account", "the model is gated and no token is set")
	case hub.BadToken:
		return read(failure.Denied, token+" a valid token; a public model needs none", "the Hub does not accept the token")
	case hub.Forbidden:
		return read(failure.Denied, "give the token read access to this repository in its settings", "the token may not read it")
	case hub.Disabled:
		return read(failure.Denied, "the Hub took the model down; choose another", "access is disabled")
	case hub.Incompatible, hub.Refused:
		return failure.New(failure.Usage, "check --hub-endpoint", "read model %s: %s does not answer as a Hub does: %w", plan.Repo, endpoint, problem)
	}
	if problem.NoConnection {
		return failure.New(failure.Unreachable, network, "reach the Hub at %s: %w", endpoint, problem)
	}
	return failure.New(failure.Unreachable, "run it again, finished files are kept", "read model %s: %w", plan.Repo, problem)
}
