package password_test

import (
	"strings"
	"testing"

	"winnow/password"
)

func TestVerify(t *testing.T) {
	t.Parallel()
	hash, err := password.Hash("correct horse battery")
	if err != nil {
		t.Fatal(err)
	}
	again, err := password.Hash("correct horse battery")
	if err != nil {
		t.Fatal(err)
	}
	if hash == again {
		t.Error("two hashes of one password are equal: the salt is missing")
	}
	for _, tc := range []struct {
		name, hash, password string
		want, wantErr        bool
	}{
		{"right", hash, "correct horse battery", true, false},
		{"wrong", hash, "correct horse batterz", false, false},
		{"empty password", hash, "", false, false},
		{"no password set", "", "", false, false},
		{"other cost", strings.Replace(hash, "t=2", "t=3", 1), "correct horse battery", false, false},
		{"malformed", "plain text", "plain text", false, true},
		{"no passes", strings.Replace(hash, "t=2", "t=0", 1), "correct horse battery", false, true},
		{"other algorithm", strings.Replace(hash, "argon2id", "argon2i", 1), "correct horse battery", false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := password.Verify(tc.hash, tc.password)
			if got != tc.want || (err != nil) != tc.wantErr {
				t.Errorf("Verify = %v, %v; want %v, error %v", got, err, tc.want, tc.wantErr)
			}
		})
	}
}
