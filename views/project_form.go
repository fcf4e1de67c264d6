package views

import "winnow"

// settingGroup is a heading of the settings with its fields.
type settingGroup struct {
	Name     string
	Settings []winnow.Setting
}

func (g settingGroup) has(field string) bool {
	for _, s := range g.Settings {
		if s.Name == field {
			return true
		}
	}
	return false
}

// settingGroups cuts the table of settings at its headings.
func settingGroups(s *winnow.Settings) []settingGroup {
	var groups []settingGroup
	for _, f := range s.Fields() {
		if len(groups) == 0 || groups[len(groups)-1].Name != f.Group {
			groups = append(groups, settingGroup{Name: f.Group})
		}
		last := &groups[len(groups)-1]
		last.Settings = append(last.Settings, f)
	}
	return groups
}

// inputMode is the keyboard that a phone shows. Numbers that may be negative or
// have a point need the full one.
func inputMode(s winnow.Setting) string {
	switch {
	case s.Float != nil && s.Min < 0:
		return "text"
	case s.Float != nil:
		return "decimal"
	default:
		return "numeric"
	}
}
