package references

import (
	"encoding/base64"
	"regexp"
	"strings"
	"unicode/utf8"
)

// forms are the ways in which a text names a place in a bucket. rest is one
// key prefix, up to what can end a path in a command line, in JSON or in YAML.
type forms struct{ url, host, bare, alone *regexp.Regexp }

const rest = `[^\s"'` + "`" + `,;)\]}|<>]*`

func formsOf(bucket string) forms {
	name := regexp.QuoteMeta(bucket)
	return forms{
		// s3://models, s3a://models/base
		url: regexp.MustCompile(`(?i:\bs3[an]?://)` + name + `(?:/(` + rest + `)|[\s"'` + "`" + `,;)\]}|<>?]|$)`),
		// https://models.s3.eu-west-1.amazonaws.com/base
		host: regexp.MustCompile(`(?i:https?://)` + name + `\.[^/\s"']+/(` + rest + `)`),
		// models/base, :s3:models/base, https://s3.example.com/models/base, arn:aws:s3:::models/base/*
		bare: regexp.MustCompile(`(?:^|[^A-Za-z0-9._-])` + name + `/(` + rest + `)`),
		// models/base where it begins a value
		alone: regexp.MustCompile(`(?:^|[\s"'=])` + name + `/(` + rest + `)`),
	}
}

// text looks for places of the bucket, and for commits, in a string. What is
// found is told, so of a Secret it must be a place beyond doubt: a commit alone
// could be a token, and a part of another URL the secret of a webhook.
func (f *finder) text(value string) {
	for _, match := range f.forms.url.FindAllStringSubmatch(value, -1) {
		f.add(pathOf(match[1]), "")
	}
	looser := []*regexp.Regexp{f.forms.host, f.forms.bare}
	if f.secret {
		looser = []*regexp.Regexp{f.forms.alone}
	}
	for _, form := range looser {
		for _, match := range form.FindAllStringSubmatch(value, -1) {
			// Without a key it may as well be a folder of that name.
			if prefix := pathOf(match[1]); prefix != "" {
				f.add(prefix, "")
			}
		}
	}
	if f.secret {
		return
	}
	for _, id := range commit.FindAllString(value, -1) {
		f.add("", id)
	}
}

// pathOf cuts a query and a pattern off a key prefix.
func pathOf(key string) string {
	key, _, _ = strings.Cut(key, "?")
	if i := strings.IndexAny(key, "*"); i >= 0 {
		key = key[:strings.LastIndex(key[:i], "/")+1]
	}
	return strings.Trim(key, "/")
}

// decoded is a Secret whose values are read like any others. They stay in
// memory: what is found of them is a place in the bucket and the Secret's name.
func decoded(object map[string]any) map[string]any {
	plain := make(map[string]any, len(object))
	for key, value := range object {
		plain[key] = value
	}
	data, _ := object["data"].(map[string]any)
	values := make(map[string]any, len(data))
	for key, value := range data {
		text, _ := value.(string)
		if raw, err := base64.StdEncoding.DecodeString(text); err == nil && utf8.Valid(raw) {
			values[key] = string(raw)
		}
	}
	plain["data"] = values
	return plain
}
