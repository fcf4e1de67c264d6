package views

import (
	"fmt"

	"winnow"
)

func importURL(project winnow.ProjectID, id winnow.ImportID, path string) string {
	return ProjectURL(project, fmt.Sprintf("/imports/%d%s", id, path))
}

func importHeading(i *winnow.Import) string {
	switch i.State {
	case winnow.ImportRunning:
		return "Importing"
	case winnow.ImportDone:
		return "Import done"
	case winnow.ImportFailed:
		return "Import failed"
	default:
		return "Import stopped"
	}
}

func importSentence(i *winnow.Import) string {
	switch {
	case i.State == winnow.ImportRunning && i.Total == 0:
		return "Counting the files."
	case i.State == winnow.ImportRunning:
		return fmt.Sprintf("%s of %s.", Count(i.Done), Plural(i.Total, "file", "files"))
	case i.State == winnow.ImportInterrupted:
		return "The import stopped half way. What went in is kept; import the same file again to continue."
	case i.State == winnow.ImportFailed && i.Added > 0:
		return "The import could not go on. What went in is kept."
	case i.State == winnow.ImportFailed:
		return "Nothing was imported: the file holds no images that can be read."
	case i.Failed > 0:
		return fmt.Sprintf("%s went in; %s did not, and why is below.", Plural(i.Added, "image", "images"), Plural(i.Failed, "file", "files"))
	case i.Added == 0:
		return "The project had all of these images already."
	default:
		return fmt.Sprintf("%s went in.", Plural(i.Added, "image", "images"))
	}
}

func importOf(i *winnow.Import) string {
	if i.Total == 0 {
		return ""
	}
	return "of " + Count(i.Total)
}

func importPurpose(i winnow.Import) string {
	if i.Labeled {
		return string(i.Split) + ", labeled"
	}
	return string(i.Split)
}
