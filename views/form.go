package views

import "github.com/a-h/templ"

// invalid marks the field that was refused, for eyes and screen readers.
func invalid(e FormError, field string) templ.Attributes {
	if e.Field != field || e.Message == "" {
		return nil
	}
	return templ.Attributes{"aria-invalid": "true", "aria-describedby": "error-" + field}
}
