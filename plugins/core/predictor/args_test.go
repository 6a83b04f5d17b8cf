package predictor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSetModel(t *testing.T) {
	const uri = "s3://new/model"
	stream := []string{"--load-format", "runai_streamer"}
	tests := map[string]struct {
		args   []string
		served string
		want   []string
	}{
		"nothing yet":             {nil, "", append([]string{uri}, stream...)},
		"other arguments only":    {[]string{"--port", "8000"}, "", append([]string{uri, "--port", "8000"}, stream...)},
		"first argument":          {[]string{"s3://old/model", "--port", "8000"}, "", append([]string{uri, "--port", "8000"}, stream...)},
		"after serve":             {[]string{"serve", "s3://old/model"}, "", append([]string{"serve", uri}, stream...)},
		"after a joined flag":     {[]string{"--port=8000", "s3://old/model"}, "", append([]string{"--port=8000", uri}, stream...)},
		"flag":                    {[]string{"--model", "org/model"}, "", append([]string{"--model", uri}, stream...)},
		"joined flag":             {[]string{"--model=org/model"}, "", append([]string{"--model=" + uri}, stream...)},
		"other flags' prefixes":   {[]string{"--model-impl", "auto", "--model", "a"}, "", append([]string{"--model-impl", "auto", "--model", uri}, stream...)},
		"tokenizer from a bucket": {[]string{"--tokenizer", "s3://old/tokenizer", "s3://old/model"}, "", append([]string{"--tokenizer", "s3://old/tokenizer", uri}, stream...)},
		"tokenizer and flag":      {[]string{"--tokenizer", "s3://old/tokenizer", "--model", "s3://old/model"}, "", append([]string{"--tokenizer", "s3://old/tokenizer", "--model", uri}, stream...)},
		"format given":            {[]string{"s3://old/model", "--load-format=runai_streamer_sharded"}, "", []string{uri, "--load-format=runai_streamer_sharded"}},
		"format in underscores":   {[]string{"s3://old/model", "--load_format", "x"}, "", []string{uri, "--load_format", "x"}},
		"named":                   {[]string{"s3://old/model", "--load-format", "x"}, "chat", []string{uri, "--load-format", "x", "--served-model-name", "chat"}},
		"named anew":              {[]string{"s3://old/model", "--served-model-name", "old", "--load-format", "x"}, "chat", []string{uri, "--served-model-name", "chat", "--load-format", "x"}},
		"named anew, joined":      {[]string{"s3://old/model", "--served_model_name=old", "--load-format", "x"}, "chat", []string{uri, "--served_model_name=chat", "--load-format", "x"}},
		"flag without a value":    {[]string{"s3://old/model", "--load-format", "x", "--served-model-name"}, "chat", []string{uri, "--load-format", "x", "--served-model-name", "chat"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := setModel(append([]string(nil), test.args...), uri, test.served)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if !namesModel(got) {
				t.Error("the result names no model")
			}
			if diff := cmp.Diff(got, setModel(append([]string(nil), got...), uri, test.served)); diff != "" {
				t.Errorf("the second time changes it: %s", diff)
			}
		})
	}
}

func TestNamesModel(t *testing.T) {
	for name, args := range map[string][]string{
		"nothing": nil, "path": {"/mnt/models"}, "tokenizer only": {"--tokenizer", "s3://x/y"}, "flag without a value": {"--model"}, "shell": {"-c", "vllm serve s3://x/y"},
	} {
		if namesModel(args) {
			t.Errorf("%s: %v names a model", name, args)
		}
	}
}

func TestValueOf(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"absent": {[]string{"x"}, ""}, "apart": {[]string{"--served-model-name", "a", "b"}, "a"}, "joined": {[]string{"--served-model-name=a=b"}, "a=b"},
		"underscores": {[]string{"--served_model_name", "a"}, "a"}, "no value": {[]string{"--served-model-name"}, ""}, "longer flag": {[]string{"--served-model-name-x", "a"}, ""},
	}
	for name, test := range tests {
		if got := valueOf(test.args, flagServed); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
