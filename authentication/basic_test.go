package authentication

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The password of each is 123456.
const htpasswdLines = `# people
admin:$apr1$3r7cqVvO$QMlpNS.QKaOWg/8qnQdpP.

sha:{SHA}fEqNCco3Yq9h5ZUglD3CZJT4lBs=
bcrypt:$2y$05$q5vkbiYl.D1VEiZ9aXMBauyrRvI0cqsb7FRF6S9aSpQR2kGvsOmHa
`

func TestBasic(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".htpasswd")
	if err := os.WriteFile(path, []byte(htpasswdLines), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{path, "file://" + path, dataURL([]byte(htpasswdLines)), base64.StdEncoding.EncodeToString([]byte(htpasswdLines))} {
		basic, err := NewBasic(source)
		if err != nil {
			t.Fatal(err)
		}
		for data, role := range map[string]string{
			"admin:123456": "admin", "sha:123456": "sha", "bcrypt:123456": "bcrypt",
			"admin:1234567": "", "admin:": "", "admin": "", ":123456": "", "": "", "nobody:123456": "", "ADMIN:123456": "", "sha:fEqNCco3Yq9h5ZUglD3CZJT4lBs=": "",
		} {
			proof, err := basic.Authenticate(now, Credentials{Data: []byte(data)})
			if role == "" {
				checkRefused(t, err, invalid)
			} else if err != nil || proof.Role != role || !proof.Expires.IsZero() {
				t.Errorf("%s: %v, %v", data, proof, err)
			}
		}
	}
}

func TestBasicFaults(t *testing.T) {
	for name, test := range map[string]struct{ content, fault string }{
		"plain text": {"a:{SHA}fEqNCco3Yq9h5ZUglD3CZJT4lBs=\nbob:hush", "line 2"},
		"DES":        {"bob:Lx0bB1VzNBzPg", "line 1"},
		"no colon":   {"bob", "line 1"},
		"no name":    {":{SHA}fEqNCco3Yq9h5ZUglD3CZJT4lBs=", "line 1"},
		"nobody":     {"# nobody\n\n", "names nobody"},
	} {
		_, err := NewBasic(dataURL([]byte(test.content)))
		if err == nil || !strings.Contains(err.Error(), test.fault) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewBasic("/nowhere/at all"); err == nil {
		t.Error("a file that does not exist")
	}
}
