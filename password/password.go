// Package password turns passwords into argon2id hashes and checks them.
package password

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
)

// Cost of a new hash: 19 MiB and two passes, the smaller of OWASP's two equal
// recommendations, so that several people can sign in at once on a small machine.
const (
	memoryKiB = 19 * 1024
	passes    = 2
	threads   = 1
	keyBytes  = 32
	saltBytes = 16
)

// Hash returns the hash of a password in PHC form, with its own salt and cost.
func Hash(password string) (string, error) {
	salt := make([]byte, saltBytes)
	if _, err := rand.Read(salt); err != nil {
		return "", fmt.Errorf("password: salt: %w", err)
	}
	key := argon2.IDKey([]byte(password), salt, passes, memoryKiB, threads, keyBytes)
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s",
		argon2.Version, memoryKiB, passes, threads, b64.EncodeToString(salt), b64.EncodeToString(key)), nil
}

// Verify reports whether the password matches the hash. An empty hash, that of a
// person without a password, matches nothing, and takes as long as any other.
func Verify(hash, password string) (bool, error) {
	if hash == "" {
		argon2.IDKey([]byte(password), make([]byte, saltBytes), passes, memoryKiB, threads, keyBytes)
		return false, nil
	}
	h, err := parse(hash)
	if err != nil {
		return false, err
	}
	key := argon2.IDKey([]byte(password), h.salt, h.passes, h.memory, h.threads, uint32(len(h.key)))
	return subtle.ConstantTimeCompare(key, h.key) == 1, nil
}

type parsed struct {
	memory, passes uint32
	threads        uint8
	salt, key      []byte
}

func parse(hash string) (parsed, error) {
	malformed := errors.New("password: malformed hash")
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" {
		return parsed{}, malformed
	}
	var version int
	if _, err := fmt.Sscanf(parts[2], "v=%d", &version); err != nil || version != argon2.Version {
		return parsed{}, malformed
	}
	var h parsed
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &h.memory, &h.passes, &h.threads); err != nil {
		return parsed{}, malformed
	}
	var err error
	if h.salt, err = base64.RawStdEncoding.DecodeString(parts[4]); err != nil {
		return parsed{}, malformed
	}
	if h.key, err = base64.RawStdEncoding.DecodeString(parts[5]); err != nil {
		return parsed{}, malformed
	}
	if h.passes == 0 || h.threads == 0 || len(h.key) == 0 {
		return parsed{}, malformed
	}
	return h, nil
}
