package api

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/swaggest/swgui/v5emb"

	"winnow/static"
)

const (
	docsPath    = "/api/docs"
	openAPIPath = "/api/openapi"
)

// mountDocs serves the page that shows the API and tries it out. The page's own
// script is a file, because the site forbids inline ones.
func mountDocs(r chi.Router) {
	assets := v5emb.New("Winnow API", openAPIPath+".json", docsPath+"/")
	for _, name := range []string{"swagger-ui.css", "swagger-ui-bundle.js"} {
		r.Get(docsPath+"/"+name, assets.ServeHTTP)
	}
	page := []byte(`<!DOCTYPE html>
<html lang="en" data-theme="light">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>API · Winnow</title>
<link rel="icon" type="image/svg+xml" href="` + static.URL("icon/winnow.svg") + `">
<link rel="stylesheet" href="` + docsPath + `/swagger-ui.css">
</head>
<body>
<noscript>The description of the API is at <a href="` + openAPIPath + `.json">` + openAPIPath + `.json</a>.</noscript>
<div id="api" data-document="` + openAPIPath + `.json"></div>
<script src="` + docsPath + `/swagger-ui-bundle.js"></script>
<script type="module" src="` + static.URL("js/docs.js") + `"></script>
</body>
</html>
`)
	r.Get(docsPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page)
	})
}
