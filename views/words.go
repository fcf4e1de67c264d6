package views

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"winnow"
)

// FormError is what was wrong with a form, and with which of its fields.
type FormError struct {
	Field   string // empty when the form as a whole was refused
	Message string
}

func displayName(u winnow.User) string {
	if u.Name != "" {
		return u.Name
	}
	return u.Email
}

// Count writes a number with thousands separators: 12,345.
func Count[T ~int | ~int64](n T) string {
	s := strconv.FormatInt(int64(n), 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	var b strings.Builder
	for i, r := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(r)
	}
	return sign + b.String()
}

// Plural writes a number with its noun: "1 image", "12 images".
func Plural[T ~int | ~int64](n T, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

// Share writes a share of one as the field does, with two decimals: .71, 1.00.
func Share(v float64) string {
	return strings.TrimPrefix(strconv.FormatFloat(v, 'f', 2, 64), "0")
}

// Percent writes a share as a percentage: 62.4%.
func Percent(v float64) string {
	return strconv.FormatFloat(100*v, 'f', 1, 64) + "%"
}

// Number writes a setting or k as short as it goes: 5, 0.05.
func Number(v float64) string {
	return strconv.FormatFloat(v, 'g', 6, 64)
}

// Seconds writes a length of time: "40 s", "3 min", "2 h 5 min".
func Seconds(s float64) string {
	switch {
	case s < 0 || math.IsNaN(s) || math.IsInf(s, 0):
		return "—"
	case s < 10:
		return strconv.FormatFloat(s, 'f', 1, 64) + " s"
	case s < 90:
		return fmt.Sprintf("%.0f s", s)
	case s < 90*60:
		return fmt.Sprintf("%.0f min", s/60)
	default:
		h := math.Floor(s / 3600)
		return fmt.Sprintf("%.0f h %.0f min", h, math.Floor((s-3600*h)/60))
	}
}

// Left writes the time that remains: "3 min left".
func Left(s float64) string {
	switch {
	case s <= 0 || math.IsNaN(s) || math.IsInf(s, 0):
		return ""
	case s < 5:
		return "a few seconds left"
	default:
		return Seconds(math.Ceil(s)) + " left"
	}
}

// Moment writes a point in time for a table, in UTC.
func Moment(t time.Time) string {
	if t.IsZero() {
		return "—"
	}
	return t.UTC().Format("2 Jan 2006, 15:04")
}

// Machine writes a point in time for a datetime attribute.
func Machine(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Bytes writes a size: "1.4 MB".
func Bytes(n int64) string {
	const unit = 1000
	if n < unit {
		return fmt.Sprintf("%d bytes", n)
	}
	v, names := float64(n)/unit, []string{"kB", "MB", "GB", "TB"}
	i := 0
	for v >= unit && i < len(names)-1 {
		v, i = v/unit, i+1
	}
	return fmt.Sprintf("%.1f %s", v, names[i])
}
