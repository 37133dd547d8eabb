import { isIP } from 'node:net'
import { type Kind, Mistake, optionalText, quote, text } from './kinds.ts'

const example = 'http://127.0.0.1:2379'

/** Checks one member of `--etcd-servers` and returns it without a trailing slash. */
export function etcdEndpoint(item: string): string {
  if (item === '') throw new Mistake(`an address is empty: write one such as ${example}`)
  const match = /^(https?):\/\/(\[[0-9A-Fa-f:.]+\]|[^\s:/?#@[\]]+)(?::(\d{1,5}))?\/?$/.exec(item)
  if (match === null) throw new Mistake(brokenEndpoint(item))
  const [, scheme, host, port] = match
  if (port === undefined) {
    throw new Mistake(`${quote(item)} has no port: write ${scheme}://${host}:2379`)
  }
  if (Number(port) < 1 || Number(port) > 65_535) {
    throw new Mistake(`${quote(item)} has a port out of range: write one between 1 and 65535`)
  }
  return `${scheme}://${host}:${port}`
}

function brokenEndpoint(item: string): string {
  if (/^[\w.-]+:\d+\/?$/.test(item)) {
    const plain = item.replace(/\/$/, '')
    return `${quote(item)} has no scheme: write http://${plain} or https://${plain}`
  }
  // The address may contain a password, so the message does not repeat it.
  if (/^[a-z]+:\/\/[^/]*@/i.test(item)) {
    return `an address contains a user name: remove it, as in ${example}`
  }
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(item)?.[1]
  if (scheme !== undefined && !/^https?$/.test(scheme)) {
    return `${quote(item)} has the scheme ${scheme}: write http or https`
  }
  return `${quote(item)} is not an address: write scheme, host and port only, such as ${example}`
}

/** Returns what is wrong with a value of `--etcd-prefix`. */
export function etcdPrefixMistake(value: string): string | undefined {
  if (!value.startsWith('/')) {
    const corrected = `/${value.replace(/\/+$/, '')}`
    return `${quote(value)} does not start with a slash: write ${quote(corrected)}`
  }
  if (value.endsWith('/')) {
    const bare = value.replace(/\/+$/, '')
    return `${quote(value)} ends with a slash: write ${bare === '' ? 'a name, such as /tidings' : quote(bare)}`
  }
  if (/\/\/|[^\x21-\x7e]/.test(value)) {
    return `${quote(value)} contains a space, a double slash or an unprintable character: write one such as /tidings`
  }
  return undefined
}

const groupLengthMax = 253
const label = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

/** Returns what is wrong with `--events-group`, which must be a DNS name of two or more parts. */
export function eventsGroupMistake(value: string): string | undefined {
  const labels = value.split('.')
  const isValid =
    value.length <= groupLengthMax && labels.length > 1 && labels.every((part) => label.test(part))
  if (isValid) return undefined
  return (
    `${quote(value)} is not a group name: write lower-case letters, digits and hyphens ` +
    'in two parts or more with dots between them, such as events.k8s.io'
  )
}

/** Returns what is wrong with the name of a cluster or a namespace, which must be a DNS label. */
export function labelMistake(value: string, noun = 'cluster'): string | undefined {
  if (label.test(value)) return undefined
  return `${quote(value)} is not the name of a ${noun}: write lower-case letters, digits and hyphens, at most 63, such as prod-eu`
}

/** Checks one item of `--proxy-protocol-from`: an IP address, or a range of them. */
export function addressRange(item: string): string {
  const [address = '', prefix, ...rest] = item.split('/')
  const bits = isIP(address) === 6 ? 128 : 32
  const isAddress = isIP(address) !== 0 && !address.includes('%') && rest.length === 0
  const isPrefix = prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits)
  if (!isAddress || !isPrefix) {
    throw new Mistake(
      `${quote(item)} is not an address range: write one such as 10.0.0.5, 10.0.0.0/24 or fd00::/64`,
    )
  }
  if (prefix !== undefined && Number(prefix) === 0) {
    throw new Mistake(`${quote(item)} would let every client claim any address: list your proxies`)
  }
  return item
}

const ARCHIVE_EXAMPLES = 'file:///var/lib/tidings/history or s3://my-bucket/tidings'
/** S3's keys have 1,024 bytes, of which most are for the names of the files. */
const ARCHIVE_PREFIX_LENGTH_MAX = 255
const bucket = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
const prefix = /^[\w=+~-][\w=+~.-]*(\/[\w=+~-][\w=+~.-]*)*$/

/** The place of `--history`, without slashes at its end. */
export const archive: Kind<string> = { ...text('url'), parse: archiveUrl }
export const optionalArchive: Kind<string | undefined> = {
  ...optionalText('url'),
  parse: archiveUrl,
}

function archiveUrl(value: string): string {
  const [, scheme, rest = ''] = /^([a-z][a-z0-9+.-]*):\/\/(.*)$/is.exec(value) ?? []
  if (scheme === 'file') return directoryUrl(value, rest.replace(/(?<=.)\/+$/, ''))
  if (scheme === 's3') return bucketUrl(rest.replace(/\/+$/, ''))
  // It may contain a password, so the message does not repeat it.
  if (scheme !== undefined) {
    throw new Mistake(`the scheme ${quote(scheme)} is not known: write ${ARCHIVE_EXAMPLES}`)
  }
  const advice = value.startsWith('/') ? `file://${value}` : ARCHIVE_EXAMPLES
  throw new Mistake(`${quote(value)} is not a URL: write ${advice}`)
}

function directoryUrl(value: string, path: string): string {
  if (!path.startsWith('/')) {
    throw new Mistake(
      `${quote(value)} has no absolute path: write three slashes, as in file:///path`,
    )
  }
  if (path === '/' || path.split('/').includes('..') || /[%?#\p{Cc}]/u.test(path)) {
    throw new Mistake(
      `${quote(value)} is not the URL of a directory: write a path without %, ?, # and .., such as file:///var/lib/tidings/history`,
    )
  }
  return `file://${path}`
}

function bucketUrl(rest: string): string {
  const slash = rest.indexOf('/')
  const [name, path] = slash < 0 ? [rest, ''] : [rest.slice(0, slash), rest.slice(slash + 1)]
  if (rest.includes('@') || rest.includes('?')) {
    throw new Mistake(
      'the URL has credentials or options: give them in the environment, and write s3://bucket/prefix',
    )
  }
  if (!bucket.test(name)) {
    throw new Mistake(
      `${quote(name)} is not the name of a bucket: write 3 to 63 lower-case letters, digits, dots and hyphens, as in s3://my-bucket/tidings`,
    )
  }
  if (path !== '' && (path.length > ARCHIVE_PREFIX_LENGTH_MAX || !prefix.test(path))) {
    throw new Mistake(
      `${quote(path)} cannot be the prefix: write up to ${ARCHIVE_PREFIX_LENGTH_MAX} letters, digits and ._=+~- between slashes, such as tidings/prod`,
    )
  }
  return path === '' ? `s3://${name}` : `s3://${name}/${path}`
}
