from isoloss.teach.panel import Panel

PANELS: tuple[Panel, ...] = ()
