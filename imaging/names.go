package imaging

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// maxName is the longest path that is kept, in runes; of a longer one, the end.
const maxName = 1000

// imageName reports whether a file's name says that it is an image.
func imageName(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".gif", ".webp", ".bmp", ".dib", ".tif", ".tiff":
		return true
	}
	return false
}

// hidden reports whether a file or folder is one that systems leave behind.
func hidden(base string) bool {
	return strings.HasPrefix(base, ".") || base == "__MACOSX" || base == "@eaDir"
}

// cleanName makes a path safe to store and show: valid UTF-8 in composed form (so
// that a folder named on a Mac matches the class typed in a browser), without
// control characters, of bounded length.
func cleanName(name string) string {
	name = norm.NFC.String(strings.ToValidUTF8(name, "\ufffd"))
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, name)
	if len(name) > maxName {
		if r := []rune(name); len(r) > maxName {
			name = "…" + string(r[len(r)-maxName+1:])
		}
	}
	return name
}

// cleanPrefix brings a prefix such as "train/" or "./train" to the form "train".
func cleanPrefix(prefix string) string {
	return strings.Trim(path.Clean("/"+strings.ReplaceAll(prefix, "\\", "/")), "/")
}

// under reports whether the file name lies in the folder prefix, "" for any.
func under(name, prefix string) bool {
	return prefix == "" || strings.HasPrefix(name, prefix+"/")
}

// related reports whether the folder dir lies in the folder prefix or leads to it.
func related(dir, prefix string) bool {
	return dir == prefix || under(dir, prefix) || under(prefix, dir)
}

// escapes reports whether an archive's path would leave the folder it is unpacked
// in. Nothing is ever unpacked to disk here; such a path is a sign of an archive
// made to do harm.
func escapes(name string) bool {
	return strings.HasPrefix(name, "/") || slices.Contains(strings.Split(name, "/"), "..") ||
		(len(name) > 1 && name[1] == ':')
}
