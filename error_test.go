package winnow_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"winnow"
)

// What a user is shown is the message alone; what the log gets is all of it.
func TestErrorHidesItsCause(t *testing.T) {
	t.Parallel()
	cause := errors.New("password for host db is hunter2")
	err := fmt.Errorf("starting round 3: %w", &winnow.Error{Code: winnow.CodeConflict, Field: "round", Message: "A round is open.", Err: cause})
	if got := winnow.ErrorCode(err); got != winnow.CodeConflict {
		t.Errorf("code %q", got)
	}
	if got := winnow.ErrorMessage(err); got != "round: A round is open." {
		t.Errorf("message %q", got)
	}
	if got := err.Error(); got != "starting round 3: round: A round is open.: password for host db is hunter2" {
		t.Errorf("for the log: %q", got)
	}
	if !errors.Is(err, cause) {
		t.Error("the cause is not in the chain")
	}
}

func TestErrorOfOthers(t *testing.T) {
	t.Parallel()
	if got := winnow.ErrorCode(nil); got != "" {
		t.Errorf("nil has code %q", got)
	}
	err := errors.New("connection to 10.0.0.7 refused")
	if got := winnow.ErrorCode(err); got != winnow.CodeInternal {
		t.Errorf("code %q", got)
	}
	if got := winnow.ErrorMessage(err); strings.Contains(got, "10.0.0.7") {
		t.Errorf("the message shows the cause: %q", got)
	}
}
