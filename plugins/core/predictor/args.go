package predictor

import (
	"fmt"
	"slices"
	"strings"
)

// Flags of vLLM that a rollout reads or sets.
const (
	flagModel  = "--model"
	flagFormat = "--load-format"
	flagServed = "--served-model-name"
)

// streamer is the load format that reads a model from S3.
const streamer = "runai_streamer"

// setModel makes vLLM's arguments load uri, and answer to served unless it is
// "". Of an existing list, only the model reference changes.
func setModel(args []string, uri, served string) []string {
	if i, prefix := modelAt(args); i >= 0 {
		args[i] = prefix + uri
	} else {
		args = append([]string{uri}, args...)
	}
	if !hasFlag(args, flagFormat) {
		args = append(args, flagFormat, streamer)
	}
	if served == "" {
		return args
	}
	switch i, prefix := flagAt(args, flagServed); {
	case i < 0:
		return append(args, flagServed, served)
	case i == len(args):
		return append(args, served)
	default:
		args[i] = prefix + served
		return args
	}
}

// modelAt returns the index of the argument that names the model and what
// stands before the name in it, -1 where none does: the value of --model, else
// an s3:// argument that is no other flag's value, such as --tokenizer's.
func modelAt(args []string) (index int, prefix string) {
	if i, prefix := flagAt(args, flagModel); i >= 0 && i < len(args) {
		return i, prefix
	}
	for i, arg := range args {
		if strings.HasPrefix(arg, "s3://") && (i == 0 || !strings.HasPrefix(args[i-1], "-") || strings.Contains(args[i-1], "=")) {
			return i, ""
		}
	}
	return -1, ""
}

// namesModel says whether the arguments name a model.
func namesModel(args []string) bool {
	i, _ := modelAt(args)
	return i >= 0
}

// flagAt returns the index of a flag's value and what stands before it in the
// same argument, -1 without the flag, len(args) where the value is missing.
func flagAt(args []string, name string) (index int, prefix string) {
	for i, arg := range args {
		flag, _, joined := strings.Cut(arg, "=")
		// vLLM takes underscores for dashes.
		if !strings.HasPrefix(flag, "--") || strings.ReplaceAll(flag, "_", "-") != name {
			continue
		}
		if joined {
			return i, flag + "="
		}
		return i + 1, ""
	}
	return -1, ""
}

func hasFlag(args []string, name string) bool {
	i, _ := flagAt(args, name)
	return i >= 0
}

// valueOf returns a flag's value, "" where it has none.
func valueOf(args []string, name string) string {
	i, prefix := flagAt(args, name)
	if i < 0 || i >= len(args) {
		return ""
	}
	return strings.TrimPrefix(args[i], prefix)
}

// argsOf returns a container's arguments; what is no string is "".
func argsOf(container any) []string {
	fields, _ := container.(map[string]any)
	list, _ := fields["args"].([]any)
	var args []string
	for _, entry := range list {
		text, _ := entry.(string)
		args = append(args, text)
	}
	return args
}

// checkArgs refuses arguments that are no strings, which YAML makes of a
// number without quotes.
func checkArgs(container map[string]any) error {
	list, ok := container["args"].([]any)
	if !ok && container["args"] != nil {
		return fmt.Errorf("args is not a list")
	}
	i := slices.IndexFunc(list, func(entry any) bool { _, ok := entry.(string); return !ok })
	if i >= 0 {
		return fmt.Errorf("args[%d] is %v, not a string: quote it", i, list[i])
	}
	return nil
}
