// Package static holds the style sheets, scripts and icons that pages load. All of
// it is embedded; each file's URL carries a hash of its content, so that browsers
// may keep it for ever and still see a new version at once.
package static

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"strings"
	"sync"
)

//go:embed css js icon
var files embed.FS

// Prefix is where the files are served.
const Prefix = "/static/"

// hashes maps each file's name to the hash that its URL carries.
var hashes = sync.OnceValue(func() map[string]string {
	m := map[string]string{}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		m[name] = hex.EncodeToString(sum[:6])
		return nil
	})
	if err != nil {
		panic("static: embedded files cannot be read: " + err.Error())
	}
	return m
})

// URL returns the address of the file with the given name, such as "css/app.css".
// A file that does not exist is a programming error and panics.
func URL(name string) string {
	hash, ok := hashes()[name]
	if !ok {
		panic("static: no file " + name)
	}
	return Prefix + name + "?v=" + hash
}

// Handler serves the files, and leaves what is none of them to notFound. An address with the right hash may be kept for ever;
// any other is checked again each time. Modules that import others by plain
// relative paths so stay correct after an update.
func Handler(notFound http.Handler) http.Handler {
	server := http.StripPrefix(Prefix, http.FileServerFS(files))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, Prefix)
		hash, ok := hashes()[name]
		if !ok {
			notFound.ServeHTTP(w, r)
			return
		}
		w.Header().Set("ETag", `"`+hash+`"`)
		if r.URL.Query().Get("v") == hash {
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		} else {
			w.Header().Set("Cache-Control", "no-cache")
		}
		server.ServeHTTP(w, r)
	})
}
