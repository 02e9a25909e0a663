package authentication

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// readContent returns what source holds: data:[type];base64,... or data:[type],..., file:///path, the path of a file that
// exists, or base64. Its errors do not repeat source, which may be a secret.
//
// Source: AuthTokenUtils.readKeyFromUrl, DataURLStreamHandler.
func readContent(source string) ([]byte, error) {
	if kind, data, ok := strings.Cut(source, ","); ok && strings.HasPrefix(kind, "data:") {
		if !strings.HasSuffix(kind, ";base64") {
			return []byte(data), nil
		}
		return decodeBase64(data)
	}
	if strings.HasPrefix(source, "file:") {
		location, err := url.Parse(source)
		if err != nil || location.Path == "" {
			return nil, errors.New("a file: URL must be file:///path")
		}
		return readFile(location.Path)
	}
	if _, err := os.Stat(source); err == nil {
		return readFile(source)
	}
	content, err := decodeBase64(source)
	if err != nil {
		return nil, errors.New("neither a data: or file: URL, nor the path of a file that exists, nor base64")
	}
	return content, nil
}

func readFile(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	return content, nil
}

func decodeBase64(text string) ([]byte, error) {
	text = strings.TrimRight(strings.TrimSpace(text), "=")
	content, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		content, err = base64.RawURLEncoding.DecodeString(text)
	}
	if err != nil || len(content) == 0 {
		return nil, errors.New("not base64")
	}
	return content, nil
}
