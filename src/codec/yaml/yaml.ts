import type { Json, JsonObject } from '../../lib/json.ts'
import { YamlSyntaxError } from '../../lib/text/yaml-documents.ts'
import { EVENT_VALUES_MAX, JsonSyntaxError, type ParsedJson, parseJson } from '../json/json-text.ts'
import { yamlNodes } from './yaml-nodes.ts'
import { yamlName, yamlText } from './yaml-text.ts'
import { TreeBuilder } from './yaml-tree.ts'

/** A longer name is written on its own line, after `? `. */
const SHORT_NAME_LENGTH = 128

export interface ParsedYaml extends ParsedJson {
  /** One for every name that a mapping repeats: `line 5: key "name" already set in map`. */
  readonly problems: readonly string[]
}

/**
 * Parses one YAML document as Kubernetes' tools do, including JSON. Throws a YamlSyntaxError, or a
 * StatusError 413 if the text is too large.
 */
export function parseYaml(text: string): ParsedYaml {
  const json = jsonIn(text)
  if (json !== undefined) return { ...json, problems: [] }
  const builder = new TreeBuilder(text)
  const nodes = yamlNodes(text)
  const value = nodes === undefined ? null : builder.tree(nodes)
  return { value, duplicates: new Map(), problems: builder.problems }
}

/** Clients send JSON, which is valid YAML. Our own JSON parser is faster and has larger limits. */
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

/** Encodes a tree as YAML with sorted names, two spaces a level and a final line break. */
export function yamlOf(tree: Json): string {
  if (isBranch(tree)) return `${branch(tree, 0)}\n`
  return `${leaf(tree, { column: 0, indent: 2 })}\n`
}

type Branch = JsonObject | Json[]

/** Returns whether the value is written on separate lines. */
function isBranch(tree: Json): tree is Branch {
  if (typeof tree !== 'object' || tree === null) return false
  return Array.isArray(tree) ? tree.length > 0 : Object.keys(tree).length > 0
}

/** The first line is not indented, since the caller has already written the text before it. */
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
  const key = yamlName(name)
  if (key.length > SHORT_NAME_LENGTH) {
    return `? ${key}\n${' '.repeat(indent)}: ${inline(value, indent + 2)}`
  }
  if (!isBranch(value)) {
    return `${key}: ${leaf(value, { column: indent + key.length + 2, indent: indent + 2 })}`
  }
  // Entries of a list have the indentation of the name, members of an object are indented further.
  const inner = Array.isArray(value) ? indent : indent + 2
  return `${key}:\n${' '.repeat(inner)}${branch(value, inner)}`
}

function leaf(value: Json, position: { readonly column: number; readonly indent: number }): string {
  if (typeof value === 'string') return yamlText(value, position)
  if (Array.isArray(value)) return '[]'
  return typeof value === 'object' && value !== null ? '{}' : String(value)
}

/** Sorts like Go's YAML library: letters after other characters, digits by numeric value. */
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

/** The number around a position, so that `a10` comes after `a9`, or 0 if there are no digits. */
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
