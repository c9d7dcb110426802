const token = "[!#$%&'*+.^_`|~0-9a-z-]{1,64}";
/** Many programs write `utf8`, which means UTF-8. */
const charset = 'charset=(?:utf-?8|"utf-?8")';
const other = `(?!charset=)${token}=(?:${token}|"[^"\\\\]{0,64}")`;
/** JSON, with any parameters except another charset. A parameter may be empty. */
const json = new RegExp(
  `^(application/(?:connect\\+)?json)(?:[ \\t]*;(?:[ \\t]*(?:${charset}|${other}))?){0,8}[ \\t]*$`,
  'i',
);

/** The media type of JSON in UTF-8 without its parameters, in lower case. Undefined for any other type. */
export function jsonMediaType(contentType: string | undefined): string | undefined {
  // The usual case first, because the expression costs more.
  if (contentType === undefined || contentType === 'application/json') return contentType;
  return json.exec(contentType)?.[1]?.toLowerCase();
}
