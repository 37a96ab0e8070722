// Answers a prompt with a daemon that runs already: chat PROMPT [MODEL]
//
// Build: CGO_CFLAGS and CGO_LDFLAGS as `pkg-config llmd` prints them, then `go build`.
package main

// #cgo LDFLAGS: -lllmd
// #include <stdlib.h>
// #include <llmd.h>
//
// extern int goOnPiece(void *user, int kind, char *text, size_t length);
//
// static int onPiece(void *user, int kind, const char *text, size_t length) {
//     return goOnPiece(user, kind, (char *)text, length);
// }
// static llmd_status openDaemon(llmd_daemon **daemon) { return llmd_open(daemon); }
// static llmd_status chat(llmd_request *request, void *user) { return llmd_chat(request, onPiece, user); }
import "C"

import (
	"errors"
	"fmt"
	"os"
	"unsafe"
)

//export goOnPiece
func goOnPiece(user unsafe.Pointer, kind C.int, text *C.char, length C.size_t) C.int {
	if kind == C.LLMD_PIECE_TEXT {
		fmt.Print(C.GoStringN(text, C.int(length)))
	}
	return 0
}

// set calls a function that takes a C string and a text with its length.
func set(name, value string, call func(*C.char, *C.char, C.size_t) C.llmd_status) C.llmd_status {
	cName, cValue := C.CString(name), C.CString(value)
	defer C.free(unsafe.Pointer(cName))
	defer C.free(unsafe.Pointer(cValue))
	return call(cName, cValue, C.size_t(len(value)))
}

func failed(message, hint *C.char) error {
	return errors.New(C.GoString(message) + "\n" + C.GoString(hint))
}

func chat(prompt, model string) error {
	var daemon *C.llmd_daemon
	if C.openDaemon(&daemon) != C.LLMD_OK {
		return errors.New("libllmd has another version than llmd.h")
	}
	defer C.llmd_close(daemon)
	var request *C.llmd_request
	if C.llmd_connect(daemon) != C.LLMD_OK || C.llmd_request_new(daemon, &request) != C.LLMD_OK {
		return failed(C.llmd_message(daemon), C.llmd_hint(daemon))
	}
	defer C.llmd_request_free(request)
	option := func(name, value *C.char, length C.size_t) C.llmd_status {
		return C.llmd_request_set(request, name, value, length)
	}
	message := func(role, text *C.char, length C.size_t) C.llmd_status {
		return C.llmd_add_message(request, role, text, length)
	}
	status := set("max_tokens", "200", option)
	if status == C.LLMD_OK && model != "" {
		status = set("model", model, option)
	}
	if status == C.LLMD_OK {
		status = set("user", prompt, message)
	}
	if status == C.LLMD_OK {
		status = C.chat(request, nil)
	}
	if status != C.LLMD_OK {
		return failed(C.llmd_request_message(request), C.llmd_request_hint(request))
	}
	fmt.Printf("\n(%s)\n", C.GoString(C.llmd_finish_reason(request)))
	return nil
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: chat PROMPT [MODEL]")
		os.Exit(1)
	}
	model := ""
	if len(os.Args) > 2 {
		model = os.Args[2]
	}
	if err := chat(os.Args[1], model); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
