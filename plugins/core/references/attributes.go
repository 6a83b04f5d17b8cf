package references

import (
	"strings"
	"unicode"
)

// attributes reads a bucket that stands beside its prefix instead of before it:
// as attributes of a volume or of a StorageClass, as keys of a ConfigMap, or as
// environment variables. A bucket alone is all of the bucket.
func (f *finder) attributes(values map[string]any, options any) {
	bucket, prefix := false, ""
	for key, value := range values {
		text, ok := value.(string)
		if !ok {
			continue
		}
		switch name := plainName(key); {
		case strings.HasSuffix(name, "bucket") || strings.HasSuffix(name, "bucketname"):
			bucket = bucket || strings.Trim(strings.TrimSpace(text), "/") == f.bucket
		case strings.HasSuffix(name, "prefix"), strings.HasSuffix(name, "subpath"), name == "path", name == "folder", name == "key" && !f.secret:
			prefix = strings.TrimSpace(text)
		}
	}
	if bucket {
		if mounted := mountedPrefix(options); mounted != "" {
			prefix = mounted
		}
		f.add(pathOf(prefix), "")
	}
}

// plainName is a key in small letters and digits: bucketName, bucket_name and
// S3_BUCKET_NAME end alike.
func plainName(key string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, key)
}

// mountedPrefix is the prefix among the mount options of a volume of the
// Mountpoint S3 CSI driver, or "".
func mountedPrefix(options any) (prefix string) {
	list, _ := options.([]any)
	for _, option := range list {
		text, _ := option.(string)
		if rest, found := strings.CutPrefix(strings.TrimLeft(text, "-"), "prefix"); found && rest != "" && strings.ContainsAny(rest[:1], " =") {
			prefix = strings.TrimSpace(rest[1:])
		}
	}
	return prefix
}

// variables are the environment variables of a list, by name.
func variables(list []any) map[string]any {
	values := make(map[string]any)
	for _, one := range list {
		variable, _ := one.(map[string]any)
		if name, ok := variable["name"].(string); ok && variable["value"] != nil {
			values[name] = variable["value"]
		}
	}
	return values
}

// volume reads the CSI volume of a PersistentVolume. Drivers for S3 have many
// names; some state the place as the volume's handle: BUCKET or BUCKET/PREFIX.
func (f *finder) volume(csi map[string]any, options any) {
	before := len(f.found)
	attributes, _ := csi["volumeAttributes"].(map[string]any)
	f.attributes(attributes, options)
	handle, _ := csi["volumeHandle"].(string)
	if len(f.found) == before && handle == f.bucket {
		f.add(mountedPrefix(options), "")
	}
	f.walk(csi, false)
}
