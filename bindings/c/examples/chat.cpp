// Answers a prompt with a daemon that runs already: chat PROMPT [MODEL]
#include <iostream>
#include <llmd.hpp>

int main(int count, char** arguments) {
    if (count < 2) {
        std::cerr << "usage: chat PROMPT [MODEL]\n";
        return 1;
    }
    try {
        llmd::Daemon daemon;
        daemon.connect();
        llmd::Request request(daemon);
        if (count > 2) request.set("model", arguments[2]);
        request.set("max_tokens", "200").add_message("user", arguments[1]);
        request.chat([](llmd::Piece piece) {
            if (piece.kind == LLMD_PIECE_TEXT) std::cout << piece.text << std::flush;
            return true;
        });
        std::cout << "\n(" << request.finish_reason() << "; " << request.answer_tokens() << " tokens)\n";
    } catch (const llmd::Error& error) {
        std::cerr << error.what() << "\n" << error.hint() << "\n";
        return 1;
    }
    return 0;
}
