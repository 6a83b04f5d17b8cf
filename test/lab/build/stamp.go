package build

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// digest identifies a set of values and files by their content.
func digest(values, files []string) (string, error) {
	h := sha256.New()
	for _, v := range values {
		fmt.Fprintf(h, "%d %s\n", len(v), v)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "file %s\n", filepath.Base(name))
		_, err = io.Copy(h, f)
		_ = f.Close() // only read
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// A stamp notes what a file was made from, and the file's size and time, so
// that a file which was cut off or replaced is made again.

func upToDate(stampFile, key, target string) bool {
	want, err := stampText(key, target)
	if err != nil {
		return false
	}
	got, err := os.ReadFile(stampFile)
	return err == nil && string(got) == want
}

func stamp(stampFile, key, target string) error {
	text, err := stampText(key, target)
	if err == nil {
		err = os.WriteFile(stampFile, []byte(text), 0o644)
	}
	if err != nil {
		return fmt.Errorf("note what %s was built from: %w", filepath.Base(target), err)
	}
	return nil
}

func stampText(key, target string) (string, error) {
	info, err := os.Stat(target)
	if err != nil {
		return "", err
	}
	return key + " " + strconv.FormatInt(info.Size(), 10) + " " + strconv.FormatInt(info.ModTime().UnixNano(), 10) + "\n", nil
}
