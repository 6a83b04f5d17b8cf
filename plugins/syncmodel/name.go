package syncmodel

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

var unfit = regexp.MustCompile(`[^a-z0-9-]+`)

// runName names the run of a plan: the same delivery has the same name, so a
// second start finds the first.
func runName(plan record.SyncPlan) string {
	_, name, _ := strings.Cut(strings.ToLower(plan.Repo), "/")
	name = strings.Trim(unfit.ReplaceAllString(name, "-"), "-")
	name = strings.TrimRight(name[:min(len(name), 28)], "-")
	sum := sha256.Sum256([]byte(strings.Join([]string{plan.Repo, plan.Revision, plan.Destination, plan.S3Endpoint, plan.HubEndpoint}, "\x00")))
	name += "-" + hex.EncodeToString(sum[:4])
	if plan.DryRun {
		// A look must neither replace the delivery's Job nor be taken for it.
		name += "-plan"
	}
	return name
}
