"""The Great Shift: five demos and a deck, measured live.

    amnesia/ attention/ progression/ race/ showdown/   what is measured, and how it is told
    panel.py     one measurement of a demo: settings -> tables -> sentences and figures
    result.py    what a measurement leaves: tables, sentences, machine, age
    learner.py   trains a cohort of small models on a task made on the spot
    prose.py     panels.toml: captions, sentences, settings' bounds, which columns a terminal draws
    words.py     what no sentence may say
    deck/        thirteen slides, the live server, the one-file build
    recorded/    results measured by us, for whoever cannot or will not wait

Importing this package does not import torch: recorded results can be shown without it.
"""
