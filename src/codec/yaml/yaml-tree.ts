import { isAlias, isMap, isScalar, isSeq, type ParsedNode, type Scalar, type YAMLMap } from 'yaml'
import { goQuote } from '../../lib/go/go-quote.ts'
import { type Json, type JsonObject, setMember } from '../../lib/json.ts'
import { truncate } from '../../lib/text/truncate.ts'
import { YamlSyntaxError } from '../../lib/text/yaml-documents.ts'
import { JSON_DEPTH_MAX } from '../json/json-text.ts'
import { lineAt } from './yaml-nodes.ts'
import { plainValue } from './yaml-plain.ts'

/** The maximum of values in the tree. A text within its limits exceeds it only by aliases. */
const VALUES_MAX = 20_000

/** The maximum of reported repeated names. */
const PROBLEMS_MAX = 100

/** Converts the nodes of a YAML document to a tree: resolves aliases, merges and scalars. */
export class TreeBuilder {
  /** One for every name that a mapping repeats: `line 5: key "name" already set in map`. */
  readonly problems: string[] = []
  readonly #text: string
  readonly #anchors = new Map<string, ParsedNode>()
  readonly #open = new Set<ParsedNode>()
  #values = 0

  constructor(text: string) {
    this.#text = text
  }

  tree(node: ParsedNode): Json {
    if (++this.#values > VALUES_MAX) {
      throw new YamlSyntaxError('yaml: document contains excessive aliasing')
    }
    if (isAlias(node)) return this.tree(this.#anchored(node.source))
    if (node.anchor !== undefined) this.#anchors.set(node.anchor, node)
    if (isScalar(node)) return this.#scalar(node)
    return this.#nested(node, () => {
      if (isMap(node)) return this.#object(node)
      return isSeq(node) ? node.items.map((item) => this.tree(item)) : null
    })
  }

  #scalar(node: Scalar.Parsed): Json {
    const value = scalarValue(node)
    // The library ends every block with a line break, even if the text ends without one.
    const isBlock = node.type === 'BLOCK_LITERAL' || node.type === 'BLOCK_FOLDED'
    const isCut = isBlock && node.range[1] >= this.#text.length && !this.#text.endsWith('\n')
    return isCut && typeof value === 'string' ? value.replace(/\n$/, '') : value
  }

  #nested<T>(node: ParsedNode, make: () => T): T {
    if (this.#open.has(node)) throw new YamlSyntaxError('yaml: an anchor contains itself')
    if (this.#open.size >= JSON_DEPTH_MAX) throw new YamlSyntaxError('yaml: exceeded max depth')
    this.#open.add(node)
    const made = make()
    this.#open.delete(node)
    return made
  }

  #anchored(name: string): ParsedNode {
    const node = this.#anchors.get(name)
    if (node !== undefined) return node
    throw new YamlSyntaxError(`yaml: unknown anchor '${truncate(name)}' referenced`)
  }

  #object(node: YAMLMap.Parsed): JsonObject {
    const object: JsonObject = {}
    const merged: JsonObject[] = []
    for (const { key, value } of node.items) {
      if (isMergeKey(key)) merged.push(...this.#mergedMaps(value))
      else {
        const name = nameOf(this.tree(key))
        if (Object.hasOwn(object, name)) this.#addDuplicate(name, value ?? key)
        setMember(object, name, value === null ? null : this.tree(value))
      }
    }
    for (const source of merged) addMissing(object, source)
    return object
  }

  /** The mappings that `<<` merges. The first one takes precedence. */
  #mergedMaps(value: ParsedNode | null): JsonObject[] {
    const tree = value === null ? null : this.tree(value)
    const maps = Array.isArray(tree) ? tree : [tree]
    return maps.map((map) => {
      if (typeof map === 'object' && map !== null && !Array.isArray(map)) return map
      throw new YamlSyntaxError('yaml: map merge requires map or sequence of maps as the value')
    })
  }

  #addDuplicate(name: string, node: ParsedNode): void {
    if (this.problems.length >= PROBLEMS_MAX) return
    const line = lineAt(this.#text, node.range[0])
    this.problems.push(`line ${line}: key ${goQuote(truncate(name))} already set in map`)
  }
}

function isMergeKey(key: ParsedNode): boolean {
  return isScalar(key) && key.type === 'PLAIN' && key.tag === undefined && key.value === '<<'
}

function addMissing(object: JsonObject, source: JsonObject): void {
  for (const [name, value] of Object.entries(source)) {
    if (!Object.hasOwn(object, name)) setMember(object, name, value)
  }
}

/** Names are strings in JSON, so numbers and booleans are converted. */
function nameOf(key: Json): string {
  if (typeof key === 'object') throw new YamlSyntaxError('yaml: a key must be a string')
  return String(key)
}

const TAG_PREFIX = 'tag:yaml.org,2002:'

function scalarValue(node: Scalar): Json {
  const text = String(node.value)
  const tag = node.tag?.startsWith(TAG_PREFIX) ? node.tag.slice(TAG_PREFIX.length) : node.tag
  if (tag === undefined && node.type !== 'PLAIN') return text
  if (tag === 'str' || tag === '!') return text
  const value = plainValue(text)
  if (Number.isNaN(value) || value === Infinity || value === -Infinity) {
    throw new YamlSyntaxError('yaml: JSON cannot represent this number')
  }
  if (tag === undefined || fits(tag, value)) return value === undefined ? text : value
  throw new YamlSyntaxError(`yaml: cannot decode a scalar as !!${truncate(tag)}`)
}

function fits(tag: string, value: null | boolean | number | undefined): boolean {
  if (tag === 'null') return value === null
  if (tag === 'bool') return typeof value === 'boolean'
  if (tag === 'int') return Number.isInteger(value)
  return tag === 'float' && typeof value === 'number'
}
