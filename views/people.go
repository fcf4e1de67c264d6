package views

import (
	"fmt"

	"winnow"
)

func memberURL(project winnow.ProjectID, user winnow.UserID) string {
	return ProjectURL(project, fmt.Sprintf("/people/members/%d", user))
}

// inviteValue keeps the address in the form only when it was refused.
func inviteValue(p PeopleProps) string {
	if p.InviteLink != "" {
		return ""
	}
	return p.InviteEmail
}

func roleWords(r winnow.Role) string {
	switch r {
	case winnow.RoleAdmin:
		return "an admin: you may do everything in the project"
	case winnow.RoleAnnotator:
		return "an annotator: you label images"
	default:
		return "a viewer: you see its images and figures"
	}
}
