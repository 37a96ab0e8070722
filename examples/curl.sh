#!/bin/sh
# Call the HTTP API with curl: ./curl.sh [URL]
set -eu
url=${1:-http://127.0.0.1:8642}

curl --fail --silent --show-error "$url/v1/models"
echo

# -N prints each piece of the stream as it arrives.
curl --fail --silent --show-error -N "$url/v1/chat/completions" \
  -H 'Content-Type: application/json' \
  -d '{"model": "guide", "messages": [{"role": "user", "content": "How do I list my models?"}], "max_tokens": 60, "stream": true}'
