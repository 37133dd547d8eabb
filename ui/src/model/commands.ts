/**
 * Shell commands that print what the page shows. They may contain anything that somebody has put
 * into a link or an event, and users paste them into shells: every value is quoted, and nothing
 * that a terminal interprets is included.
 */

/** The events of a cluster and a namespace that match a field selector. */
export interface Question {
  /** Empty for the default cluster. */
  readonly cluster: string
  /** Empty for all namespaces. */
  readonly namespace: string
  readonly selector: string
}

/** Prints the events as a table, oldest first. */
export function kubectlCommand({ cluster, namespace, selector }: Question): string {
  const words = ['kubectl', ...serverOf(cluster), 'get', 'events']
  words.push(...(namespace === '' ? ['-A'] : ['-n', shellWord(namespace)]))
  if (selector !== '') words.push('--field-selector', shellWord(withoutEndOfLine(selector)))
  return words.join(' ')
}

/**
 * Other clusters are paths below the server of the kubeconfig, which may be for one of them itself.
 * kubectl forgets the kubeconfig's `tls-server-name` when `--server` is given.
 */
function serverOf(cluster: string): readonly string[] {
  if (cluster === '') return []
  const server = `"$(${configured('server')} | sed 's,\\(/clusters/[^/]*\\)*/*$,,')"`
  return [
    '--server',
    `${server}${shellWord(`/clusters/${encodeURIComponent(cluster)}`)}`,
    '--tls-server-name',
    `"$(${configured('tls-server-name')})"`,
  ]
}

/** Prints a field of the current context's cluster. */
function configured(field: string): string {
  return `kubectl config view --minify -o 'jsonpath={.clusters[0].cluster.${field}}'`
}

/** `$( )` strips trailing newlines. Tables are in this order anyway. */
function withoutEndOfLine(selector: string): string {
  return selector.endsWith('\n') ? `${selector},order=oldest` : selector
}

/**
 * The token is in a variable, so that neither the clipboard nor the shell's history contains it.
 */
export function curlCommand(url: string): string {
  const isSecure = url.startsWith('https:')
  const access = isSecure ? '--cacert ca.crt -H "Authorization: Bearer $TOKEN" ' : ''
  return `curl ${access}${shellWord(url)}`
}

/** Words that every POSIX shell leaves unchanged. */
const PLAIN_WORD = /^[\w@%+:,./-][\w@%+=:,./-]*$/

/** Control characters, direction marks and the like, which a terminal would interpret. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u

/** Quotes a value as one POSIX shell word. NULs are removed, since a word cannot contain them. */
export function shellWord(value: string): string {
  const text = value.toWellFormed().replaceAll('\0', '')
  if (PLAIN_WORD.test(text)) return text
  if (!UNPRINTABLE.test(text)) return `'${text.replaceAll("'", "'\\''")}'`
  return `"$(printf '${text.replaceAll(/[^\w @+=:,./-]/gu, octal)}')"`
}

function octal(character: string): string {
  const bytes = [...new TextEncoder().encode(character)]
  return bytes.map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
}
