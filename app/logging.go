package app

import (
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"
)

// newLogger logs to w: text for a person at a terminal, JSON for a machine.
func newLogger(w io.Writer, level, format string) *slog.Logger {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		l = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: l}
	if format == "json" || (format != "text" && !isTerminal(w)) {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	options.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			return slog.String(slog.TimeKey, a.Value.Time().Format("15:04:05"))
		}
		return a
	}
	return slog.New(slog.NewTextHandler(w, options))
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
