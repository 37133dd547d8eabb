import type { Json, JsonObject } from '../lib/json.ts'
import { EVENT_VALUES_MAX, JsonSyntaxError, type ParsedJson, parseJson } from './json-text.ts'
import { YamlSyntaxError, yamlNodes } from './yaml-nodes.ts'
import { yamlName, yamlText } from './yaml-text.ts'
import { TreeMaker } from './yaml-tree.ts'

/** A name longer than this stands on a line of its own, marked as a name. */
const SHORT_NAME_LENGTH = 128

export interface ParsedYaml extends ParsedJson {
  /** `line 5: key "name" already set in map`, for every name that a mapping repeats. */
  readonly problems: readonly string[]
}

/**
 * Reads one YAML document as Kubernetes' tools do, JSON included. Fails with a YamlSyntaxError, or
 * with a StatusError 413 if there is more than we read.
 */
export function parseYaml(text: string): ParsedYaml {
  const json = jsonIn(text)
  if (json !== undefined) return { ...json, problems: [] }
  const maker = new TreeMaker(text)
  const nodes = yamlNodes(text)
  const value = nodes === undefined ? null : maker.tree(nodes)
  return { value, duplicates: new Map(), problems: maker.problems }
}

/** Clients send JSON as YAML, and rightly so: it is. Our own reader is quicker and has other bounds. */
function jsonIn(text: string): ParsedJson | undefined {
  if (!/^\s*\{/.test(text)) return undefined
  try {
    return parseJson(text, EVENT_VALUES_MAX)
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error
    if (error.kind !== 'syntax') throw new YamlSyntaxError(`yaml: ${error.message}`)
    return undefined
  }
}

/** The tree as YAML that ends with a line break: names sorted, two spaces a level. */
export function yamlOf(tree: Json): string {
  if (isBranch(tree)) return `${branch(tree, 0)}\n`
  return `${leaf(tree, { column: 0, indent: 2 })}\n`
}

type Branch = JsonObject | Json[]

/** What has lines of its own. */
function isBranch(tree: Json): tree is Branch {
  if (typeof tree !== 'object' || tree === null) return false
  return Array.isArray(tree) ? tree.length > 0 : Object.keys(tree).length > 0
}

/** Its first line has no margin: whoever asks has written up to it. */
function branch(tree: Branch, indent: number): string {
  const lines = Array.isArray(tree)
    ? tree.map((entry) => `- ${inline(entry, indent + 2)}`)
    : Object.keys(tree)
        .sort(compareNaturally)
        .map((name) => member(name, tree[name] ?? null, indent))
  return lines.join(`\n${' '.repeat(indent)}`)
}

function inline(tree: Json, column: number): string {
  return isBranch(tree) ? branch(tree, column) : leaf(tree, { column, indent: column })
}

function member(name: string, value: Json, indent: number): string {
  const shown = yamlName(name)
  if (shown.length > SHORT_NAME_LENGTH) {
    return `? ${shown}\n${' '.repeat(indent)}: ${inline(value, indent + 2)}`
  }
  if (!isBranch(value)) {
    return `${shown}: ${leaf(value, { column: indent + shown.length + 2, indent: indent + 2 })}`
  }
  // Entries of a list stand below the name itself, members of an object further in.
  const inner = Array.isArray(value) ? indent : indent + 2
  return `${shown}:\n${' '.repeat(inner)}${branch(value, inner)}`
}

function leaf(value: Json, spot: { readonly column: number; readonly indent: number }): string {
  if (typeof value === 'string') return yamlText(value, spot)
  if (Array.isArray(value)) return '[]'
  return typeof value === 'object' && value !== null ? '{}' : String(value)
}

/** As Go's YAML sorts names: letters after all else, and runs of digits by their number. */
function compareNaturally(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  let at = 0
  while (at < length && a.charCodeAt(at) === b.charCodeAt(at)) at++
  if (at === length) return a.length - b.length
  const left = a.charCodeAt(at)
  const right = b.charCodeAt(at)
  const leftIsLetter = isLetter(left)
  if (leftIsLetter !== isLetter(right)) return leftIsLetter ? 1 : -1
  const byNumber = leftIsLetter ? 0 : numberAt(a, at) - numberAt(b, at)
  return byNumber || left - right
}

function isLetter(unit: number): boolean {
  if (unit < 0x80) return (unit | 0x20) >= 0x61 && (unit | 0x20) <= 0x7a
  return /^\p{L}$/u.test(String.fromCharCode(unit))
}

/** Of the run of digits around a place, so that `a10` comes after `a9`; 0 if there is none. */
function numberAt(text: string, at: number): number {
  let from = at
  while (isDigit(text.charCodeAt(from - 1))) from--
  let to = at
  while (isDigit(text.charCodeAt(to))) to++
  return to === at ? 0 : Number(text.slice(from, to))
}

function isDigit(unit: number): boolean {
  return unit >= 0x30 && unit <= 0x39
}
