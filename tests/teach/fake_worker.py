"""A worker that measures nothing and starts in no time: the protocol of deck/worker.py, nothing else."""

import json
import os
import sys
import threading

enough = threading.Event()


def say(**event):
    print(json.dumps(event), flush=True)


def obey(settings):
    if settings["end"] == "nonsense":
        print("this is not JSON", flush=True)
    if settings["end"] == "die":
        print("out of memory, says the kernel", file=sys.stderr, flush=True)
        os._exit(7)
    say(event="progress", done=0.5, text=f"half way in {os.getpid()}")
    say(event="partial", html="<p>so far</p>")
    enough.wait(settings["seconds"])
    if settings["end"] == "raise":
        say(event="failed", message="it met a wall")
    else:
        say(event="result", html=f"<p>{settings['prompt']}</p>", result={"pid": os.getpid()})


def main():
    for line in sys.stdin:
        order = json.loads(line)
        if "stop" in order:
            enough.set()
            continue
        enough.clear()
        # A thread, so that the end of stdin ends the process in the middle of a job.
        threading.Thread(target=obey, args=(order["settings"],), daemon=True).start()


if __name__ == "__main__":
    main()
