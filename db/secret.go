package db

import (
	"crypto/rand"
	"crypto/sha256"
)

// newSecret returns a random text of 130 bits for a link or a token, and the hash
// that is stored of it. The secret needs no salt and no slow hash: nobody guesses it.
func newSecret(prefix string) (secret string, hash []byte) {
	secret = prefix + rand.Text()
	return secret, hashSecret(secret)
}

func hashSecret(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}
