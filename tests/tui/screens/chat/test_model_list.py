from __future__ import annotations

from llmd_tui.screens.chat.model_list import ChatModel, chat_models, rows


def test_models_keep_their_order_and_tell_their_window() -> None:
    reply = {
        "data": [
            {"id": "guide", "max_model_len": 1024, "status": "loaded"},
            {"id": "longer-name", "max_model_len": None, "status": "unloaded"},
        ]
    }
    models = chat_models(reply)
    assert models == [ChatModel("guide", 1024, "loaded"), ChatModel("longer-name", None, "unloaded")]
    assert list(rows(models)) == [
        ("guide", "guide        loaded    1024 tokens"),
        ("longer-name", "longer-name  unloaded"),
    ]
    assert list(rows(chat_models({}))) == []
