#!/usr/bin/env bash
# Makes the secrets that docker-compose.yml mounts, in deploy/secrets. What is there stays.
set -euo pipefail
cd "$(dirname "$0")"

# The folder is closed to others on this machine. The files are open: Compose mounts a file
# secret with the mode it has, and the program in the container is not their owner.
mkdir -p secrets
chmod 700 secrets

if [ ! -s secrets/postgres_password ]; then
	od -An -N 24 -tx1 /dev/urandom | tr -d ' \n' >secrets/postgres_password
fi
if [ ! -s secrets/database_url ]; then
	printf 'postgres://winnow:%s@postgres:5432/winnow?sslmode=disable' "$(cat secrets/postgres_password)" >secrets/database_url
fi
chmod 644 secrets/postgres_password secrets/database_url
echo "deploy/secrets has the database's password and URL."
