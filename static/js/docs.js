// Starts the API page. SwaggerUIBundle comes from the classic script before.
SwaggerUIBundle({
  dom_id: "#api",
  url: document.getElementById("api").dataset.document,
  deepLinking: true,
  validatorUrl: null,
  persistAuthorization: false,
});
