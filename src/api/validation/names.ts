/**
 * Validates names. The messages, including the patterns, are exactly those of Kubernetes, because
 * clients know them. Limits count UTF-8 bytes, even where the message says characters.
 *
 * Loops check the characters, since a regular expression would store a backtracking position for
 * each character of a text that may be megabytes long.
 */

const SUBDOMAIN_BYTES_MAX = 253
const PART_BYTES_MAX = 63

const SUBDOMAIN_TEXT =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', " +
  "and must start and end with an alphanumeric character (e.g. 'example.com', regex used for " +
  "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
const LABEL_TEXT =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must " +
  "start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for " +
  "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
const NAME_PART_TEXT =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an " +
  "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for " +
  "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
const LABEL_VALUE_TEXT =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', " +
  "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or " +
  "'12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

/** The rules for the name of an object, and for a prefix to which a suffix is appended. */
export interface NameRule {
  readonly name: (text: string) => readonly string[]
  readonly prefix: (text: string) => readonly string[]
}

/** The rule for new objects. */
export const subdomainNames: NameRule = {
  name: subdomainProblems,
  // A trailing dash is valid in a prefix: the generated suffix follows it.
  prefix: (text) =>
    subdomainProblems(text.length > 1 && text.endsWith('-') ? `${text.slice(0, -1)}a` : text),
}

/** The rule for existing objects: the name must be a valid path segment. */
export const pathSegmentNames: NameRule = {
  name: (text) =>
    text === '.' || text === '..' ? [`may not be '${text}'`] : pathSegmentPrefixProblems(text),
  prefix: pathSegmentPrefixProblems,
}

/** Checks names like `example.com`. Each returned message describes one error. */
export function subdomainProblems(text: string): readonly string[] {
  const fits = !exceedsBytes(text, SUBDOMAIN_BYTES_MAX)
  const matches = isSubdomain(text, text.length)
  if (fits && matches) return NONE
  return [
    ...(fits ? NONE : [`must be no more than ${SUBDOMAIN_BYTES_MAX} characters`]),
    ...(matches ? NONE : [SUBDOMAIN_TEXT]),
  ]
}

/** Whether the text is an RFC 1123 label, as names of clusters and namespaces must be. */
export function isDnsLabel(text: string): boolean {
  return labelProblems(text).length === 0
}

/** Checks names like `my-name`, which are one label of a domain name. */
export function labelProblems(text: string): readonly string[] {
  const fits = !exceedsBytes(text, PART_BYTES_MAX)
  const isDomain = isSubdomain(text, text.length)
  const matches = isDomain && !text.includes('.')
  if (fits && matches) return NONE
  return [
    ...(fits ? NONE : [`must be no more than ${PART_BYTES_MAX} characters`]),
    ...(matches ? NONE : [isDomain ? 'must not contain dots' : LABEL_TEXT]),
  ]
}

/** Checks names like `MyName` or `example.com/MyName`. */
export function qualifiedNameProblems(text: string): readonly string[] {
  if (isQualifiedName(text)) return NONE
  const slash = text.indexOf('/')
  if (slash >= 0 && text.includes('/', slash + 1)) {
    return [
      `a valid label key ${NAME_PART_TEXT} with an optional DNS subdomain prefix and '/' ` +
        "(e.g. 'example.com/MyName')",
    ]
  }
  const prefix = slash < 0 ? NONE : prefixProblems(text.slice(0, slash))
  return [...prefix, ...namePartProblems(text.slice(slash + 1))]
}

/** Checks the value of a label, which may be empty. */
export function labelValueProblems(text: string): readonly string[] {
  const fits = !exceedsBytes(text, PART_BYTES_MAX)
  const matches = text === '' || isNamePart(text, 0)
  if (fits && matches) return NONE
  return [
    ...(fits ? NONE : [`must be no more than ${PART_BYTES_MAX} bytes`]),
    ...(matches ? NONE : [LABEL_VALUE_TEXT]),
  ]
}

/** Returns whether a text takes more bytes than this in UTF-8. */
export function exceedsBytes(text: string, bytesMax: number): boolean {
  // A code unit takes one to three bytes, so most texts need no exact count.
  if (text.length * 3 <= bytesMax) return false
  return text.length > bytesMax || Buffer.byteLength(text) > bytesMax
}

/** Returns whether `qualifiedNameProblems` would find none. */
export function isQualifiedName(text: string): boolean {
  const slash = text.indexOf('/')
  if (slash >= 0 && (slash > SUBDOMAIN_BYTES_MAX || !isSubdomain(text, slash))) return false
  return text.length - slash - 1 <= PART_BYTES_MAX && isNamePart(text, slash + 1)
}

const NONE: readonly string[] = []
const DASH = 0x2d
const DOT = 0x2e
const UNDERSCORE = 0x5f

function prefixProblems(prefix: string): readonly string[] {
  if (prefix === '') return ['prefix part must be non-empty']
  return [
    ...(exceedsBytes(prefix, SUBDOMAIN_BYTES_MAX)
      ? [`prefix part must be no more than ${SUBDOMAIN_BYTES_MAX} bytes`]
      : NONE),
    ...(isSubdomain(prefix, prefix.length) ? NONE : [`prefix part ${SUBDOMAIN_TEXT}`]),
  ]
}

function namePartProblems(name: string): readonly string[] {
  if (name === '') return ['name part must be non-empty', `name part ${NAME_PART_TEXT}`]
  return [
    ...(exceedsBytes(name, PART_BYTES_MAX)
      ? [`name part must be no more than ${PART_BYTES_MAX} bytes`]
      : NONE),
    ...(isNamePart(name, 0) ? NONE : [`name part ${NAME_PART_TEXT}`]),
  ]
}

function pathSegmentPrefixProblems(text: string): readonly string[] {
  const slash = text.includes('/')
  const percent = text.includes('%')
  if (!slash && !percent) return NONE
  return [
    ...(slash ? ["may not contain '/'"] : NONE),
    ...(percent ? ["may not contain '%'"] : NONE),
  ]
}

/** Whether the text up to `end` is a list of `[a-z0-9]([-a-z0-9]*[a-z0-9])?`, separated by dots. */
function isSubdomain(text: string, end: number): boolean {
  let last = DOT
  for (let at = 0; at < end; at++) {
    const code = text.charCodeAt(at)
    if (code === DOT || code === DASH) {
      // A dot or a dash may not follow a dot, and a dot may not follow a dash.
      if (last === DOT || (last === DASH && code === DOT)) return false
    } else if (!isDigit(code) && !isLower(code)) return false
    last = code
  }
  return last !== DOT && last !== DASH
}

/** Whether the text from `start` is `([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]`. */
function isNamePart(text: string, start: number): boolean {
  const last = text.length - 1
  if (last < start || !isAlphanumeric(text.charCodeAt(start))) return false
  for (let at = start + 1; at < last; at++) {
    const code = text.charCodeAt(at)
    if (!isAlphanumeric(code) && code !== DASH && code !== DOT && code !== UNDERSCORE) return false
  }
  return isAlphanumeric(text.charCodeAt(last))
}

function isAlphanumeric(code: number): boolean {
  // This bit converts an upper case letter to lower case, and no other character to a letter.
  return isDigit(code) || isLower(code | 0x20)
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}

function isLower(code: number): boolean {
  return code >= 0x61 && code <= 0x7a
}
