package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
)

// kedaModule is where KEDA's programs and objects come from.
const kedaModule = "test/lab/servers/keda"

// kedaFiles are the API objects of KEDA's own tree that the lab uses as they
// are, from its config folder.
func kedaFiles() []string {
	return []string{
		"service_account/service_account.yaml",
		"rbac/role.yaml", "rbac/role_binding.yaml", "rbac/aggregate_cluster_roles.yaml",
		// Without these the HPA controller may not read external metrics.
		"metrics-server/role.yaml", "metrics-server/role_binding.yaml",
		"webhooks/validation_webhooks.yaml",
	}
}

// kedaObjects copies KEDA's objects into the lab's directory. The custom
// resources are rendered, because a kustomization sets some of their limits.
func kedaObjects(ctx context.Context, source string, l layout.Layout) error {
	module := filepath.Join(source, kedaModule)
	key, err := digest(kedaFiles(), []string{filepath.Join(module, "go.mod")})
	if err != nil {
		return fmt.Errorf("copy KEDA's objects: %w", err)
	}
	crds := l.Objects("keda", "crds.yaml")
	if upToDate(l.Stamps("keda-objects"), key, crds) {
		return nil
	}
	out, err := run(ctx, module, environment(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/kedacore/keda/v2")
	if err != nil {
		return fmt.Errorf("find KEDA's objects: %w", err)
	}
	config := filepath.Join(strings.TrimSpace(string(out)), "config")
	if err := os.MkdirAll(filepath.Dir(crds), 0o755); err != nil {
		return fmt.Errorf("copy KEDA's objects: %w", err)
	}
	for _, name := range kedaFiles() {
		data, err := os.ReadFile(filepath.Join(config, name))
		if err != nil {
			return fmt.Errorf("copy KEDA's objects: %w", err)
		}
		flat := strings.ReplaceAll(name, "/", "-")
		if err := os.WriteFile(l.Objects("keda", flat), data, 0o644); err != nil {
			return fmt.Errorf("copy KEDA's objects: %w", err)
		}
	}
	rendered, err := run(ctx, string(l), nil, l.Bin("kubectl"), "kustomize", filepath.Join(config, "crd"))
	if err != nil {
		return fmt.Errorf("render KEDA's custom resources: %w", err)
	}
	if err := os.WriteFile(crds, rendered, 0o644); err != nil {
		return fmt.Errorf("render KEDA's custom resources: %w", err)
	}
	return stamp(l.Stamps("keda-objects"), key, crds)
}
