/**
 * Commands that print what the page shows. They are pasted into shells and may contain anything
 * that somebody has put into a link or an event, so that every value is quoted, and nothing that a
 * terminal interprets is in them.
 */

/** The events of a cluster and a namespace that a field selector selects. */
export interface Question {
  /** Empty: the default one. */
  readonly cluster: string
  /** Empty: all namespaces. */
  readonly namespace: string
  readonly selector: string
}

/** Prints the events as a table, the oldest first. */
export function kubectlCommand({ cluster, namespace, selector }: Question): string {
  const words = ['kubectl', ...serverOf(cluster), 'get', 'events']
  words.push(...(namespace === '' ? ['-A'] : ['-n', shellWord(namespace)]))
  if (selector !== '') words.push('--field-selector', shellWord(withoutEndOfLine(selector)))
  return words.join(' ')
}

/** Another cluster is a path behind the server of the kubeconfig. */
function serverOf(cluster: string): readonly string[] {
  if (cluster === '') return []
  const server = `"$(kubectl config view --minify -o 'jsonpath={.clusters[0].cluster.server}')"`
  return ['--server', `${server}${shellWord(`/clusters/${encodeURIComponent(cluster)}`)}`]
}

/** `$( )` drops the ends of lines at its end. Tables have this order anyway. */
function withoutEndOfLine(selector: string): string {
  return selector.endsWith('\n') ? `${selector},order=oldest` : selector
}

/** The token is in a variable, so that it is neither in the clipboard nor in a file of history. */
export function curlCommand(url: string): string {
  const isSecure = url.startsWith('https:')
  const access = isSecure ? '--cacert ca.crt -H "Authorization: Bearer $TOKEN" ' : ''
  return `curl ${access}${shellWord(url)}`
}

/** Words that no POSIX shell changes. */
const PLAIN_WORD = /^[\w@%+:,./-][\w@%+=:,./-]*$/

/** Controls, marks that change the direction of text, and the like: a terminal would act on them. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u

/** One word of a POSIX shell with this value. The value cannot have a NUL, and loses it. */
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
