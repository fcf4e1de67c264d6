package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"winnow"
	"winnow/db"
	"winnow/password"
)

// handedLinkLife is how long a sign-in link lives that somebody hands on by chat or
// mail.
const handedLinkLife = 24 * time.Hour

func (c *cli) newUserCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "user",
		Short: "Make accounts and reset their passwords",
		Example: `  winnow user create you@example.org --admin
  winnow user reset-password you@example.org`,
	}
	cmd.AddCommand(c.newUserCreateCommand(), c.newUserResetCommand())
	return cmd
}

func (c *cli) newUserCreateCommand() *cobra.Command {
	var (
		name  string
		admin bool
		stdin bool
	)
	cmd := &cobra.Command{
		Use:   "create EMAIL",
		Short: "Make an account",
		Long: `Make an account. Prints a link that signs its owner in once, within a day; they
set a password on their account page. With --password-stdin the account has a
password from the start, and no link is made.`,
		Example: `  winnow user create you@example.org --name "Your Name" --admin
  pass show winnow | winnow user create you@example.org --password-stdin`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			hash, err := readPassword(cmd.InOrStdin(), stdin)
			if err != nil {
				return err
			}
			store, closeStore, err := c.openStore(cmd.Context())
			if err != nil {
				return err
			}
			defer closeStore()
			if name == "" {
				name, _, _ = strings.Cut(args[0], "@")
			}
			id, err := store.CreateUser(cmd.Context(), winnow.User{Email: args[0], Name: name, SiteAdmin: admin}, hash)
			if err != nil {
				return err
			}
			return c.printAccess(cmd, store, id, stdin)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "name that others see; default: the part of the address before @")
	cmd.Flags().BoolVar(&admin, "admin", false, "may make projects, and is admin of all of them")
	cmd.Flags().BoolVar(&stdin, "password-stdin", false, "read the password from the standard input")
	return c.withOptions(cmd, optionsDatabase, optionsWeb, optionsLog)
}

func (c *cli) newUserResetCommand() *cobra.Command {
	var stdin bool
	cmd := &cobra.Command{
		Use:   "reset-password EMAIL",
		Short: "Take an account's password away, or set another",
		Long: `Take an account's password away, end its sessions, and print a link that signs
its owner in once, within a day. With --password-stdin the account gets that
password instead.`,
		Example: "  winnow user reset-password you@example.org",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			hash, err := readPassword(cmd.InOrStdin(), stdin)
			if err != nil {
				return err
			}
			store, closeStore, err := c.openStore(cmd.Context())
			if err != nil {
				return err
			}
			defer closeStore()
			user, _, err := store.UserByEmail(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := store.SetPassword(cmd.Context(), user.ID, hash); err != nil {
				return err
			}
			return c.printAccess(cmd, store, user.ID, stdin)
		},
	}
	cmd.Flags().BoolVar(&stdin, "password-stdin", false, "read the password from the standard input")
	return c.withOptions(cmd, optionsDatabase, optionsWeb, optionsLog)
}

// readPassword returns the hash of the password on the first line of r, or none
// when it is not asked for.
func readPassword(r io.Reader, ask bool) (hash string, err error) {
	if !ask {
		return "", nil
	}
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the password: %w", err)
	}
	line = strings.TrimRight(line, "\r\n")
	if err := winnow.ValidatePassword(line); err != nil {
		return "", err
	}
	return password.Hash(line)
}

// printAccess says how the account's owner signs in.
func (c *cli) printAccess(cmd *cobra.Command, store *db.Store, id winnow.UserID, hasPassword bool) error {
	if hasPassword {
		fmt.Fprintf(cmd.OutOrStdout(), "Sign in with the password at %s/signin\n", c.cfg.baseURL())
		return nil
	}
	link, err := signInLink(cmd.Context(), store, c.cfg.baseURL(), id, handedLinkLife)
	if err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), link)
	return nil
}

// signInLink makes a link that signs somebody in once, within life.
func signInLink(ctx context.Context, store *db.Store, baseURL string, id winnow.UserID, life time.Duration) (string, error) {
	secret, err := store.CreateSignInLink(ctx, id, life)
	if err != nil {
		return "", err
	}
	return baseURL + "/signin/link/" + secret, nil
}

// baseURL is what links begin with.
func (c *Config) baseURL() string {
	if c.BaseURL != "" {
		return c.BaseURL
	}
	return "http://" + net.JoinHostPort(c.reachableHost(), strconv.Itoa(c.Port))
}

// secure reports whether people reach the server by HTTPS only.
func (c *Config) secure() bool { return strings.HasPrefix(c.BaseURL, "https://") }

// reachableHost is where this machine reaches its own server.
func (c *Config) reachableHost() string {
	switch ip := net.ParseIP(c.Host); {
	case ip == nil || !ip.IsUnspecified():
		return c.Host
	case ip.To4() == nil:
		return "::1"
	default:
		return "127.0.0.1"
	}
}

func (c *cli) newTokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "token",
		Short:   "Make tokens for programs that use the API",
		Example: "  winnow token create --project Birds --user you@example.org --name nightly",
	}
	cmd.AddCommand(c.newTokenCreateCommand())
	return cmd
}

func (c *cli) newTokenCreateCommand() *cobra.Command {
	var (
		project, user, name string
		days                int
	)
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a token and print its secret, which is shown only once",
		Example: `  winnow token create --project Birds --user you@example.org --name nightly
  TOKEN=$(winnow token create --project 1 --user you@example.org --days 7)`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if days < 1 || days > 3650 {
				return usagef("invalid --days %d: it is from 1 to 3650", days)
			}
			store, closeStore, err := c.openStore(cmd.Context())
			if err != nil {
				return err
			}
			defer closeStore()
			p, err := store.FindProject(cmd.Context(), project)
			if err != nil {
				return err
			}
			u, _, err := store.UserByEmail(cmd.Context(), user)
			if err != nil {
				return err
			}
			if _, err := store.Role(cmd.Context(), p.ID, u); err != nil {
				return &winnow.Error{Code: winnow.CodeForbidden, Message: fmt.Sprintf("%s is not a member of %q.", u.Email, p.Name)}
			}
			secret, err := store.CreateToken(cmd.Context(), winnow.Token{
				ProjectID: p.ID, UserID: u.ID, Name: name, ExpiresAt: time.Now().AddDate(0, 0, days),
			})
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), secret)
			return nil
		},
	}
	cmd.Flags().StringVar(&project, "project", "", "name or number of the project")
	cmd.Flags().StringVar(&user, "user", "", "e-mail of the member for whom the token acts")
	cmd.Flags().StringVar(&name, "name", "command line", "what the token is for")
	cmd.Flags().IntVar(&days, "days", 365, "days until it expires")
	_ = cmd.MarkFlagRequired("project")
	_ = cmd.MarkFlagRequired("user")
	return c.withOptions(cmd, optionsDatabase, optionsLog)
}
