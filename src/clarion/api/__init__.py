"""The HTTP door: `app.create_app` makes the application, `server` runs it.

| module | what it holds |
|---|---|
| `app` | the wiring of all below |
| `notifications`, `timelines`, `types`, `support` | the routes under /v1, by subject |
| `probes`, `outbox` | health, readiness, metrics, the OpenAPI document; the sandbox's pages |
| `contract`, `example`, `description` | what a route promises, and the OpenAPI document drawn from it |
| `context`, `authentication`, `reading` | what handlers work with; who asks; reading a request strictly |
| `problem` | every error as an HTTP answer; no other module maps errors to statuses |
| `door` | around every request: its id, its limits, its headers, its log line |
| `logs`, `metrics`, `pulse` | what operators see |
| `server` | uvicorn with explicit limits |
"""
