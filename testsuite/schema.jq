# Holds a JSON document to a schema of doc/schema: the part of JSON Schema that these schemas use, and
# no key that they do not declare. Prints one line for each fault.
# usage: jq -r --arg file queue.json --argjson all SCHEMAS -f schema.jq DOCUMENT
# SCHEMAS: one object, a member for each file. A $ref is a file's name, or #/$defs/NAME in the same one.

def resolve($file; $s):
    if $s | has("$ref") | not then {file: $file, schema: $s}
    elif $s["$ref"] | startswith("#/$defs/") then {file: $file, schema: $all[$file]["$defs"][$s["$ref"][8:]]}
    else {file: $s["$ref"], schema: $all[$s["$ref"]]} end
    | if .schema == null then error("\($file): \($s["$ref"]) is not there") else . end;

def is_of($want):
    if $want == "integer" then type == "number" and . == floor else type == $want end;

def check($file; $s; $path):
    . as $value
    | resolve($file; $s) as {file: $file, schema: $s}
    | (if ($s.type | type) == "array" then $s.type elif $s.type then [$s.type] else null end) as $types
    | if $types != null and ([$types[] | . as $t | $value | is_of($t)] | any | not) then "\($path): \(type) instead of \($types | join(" or "))"
      elif ($s | has("const")) and $value != $s.const then "\($path): \($value) instead of \($s.const)"
      elif ($s | has("enum")) and ($s.enum | index($value)) == null then "\($path): \($value) is not listed"
      elif ($s | has("pattern")) and ($value | test($s.pattern) | not) then "\($path): \($value) does not look like \($s.pattern)"
      elif ($s | has("minimum")) and $value < $s.minimum then "\($path): \($value) is below \($s.minimum)"
      elif ($s | has("maximum")) and $value > $s.maximum then "\($path): \($value) is above \($s.maximum)"
      elif type == "array" then range(length) as $i | .[$i] | check($file; $s.items; "\($path)[\($i)]")
      elif type == "object" then
        ($s.required[]? | select(. as $k | $value | has($k) | not) | "\($path): \(.) is missing"),
        (keys_unsorted[] as $k
         | if ($s.additionalProperties | type) == "object" and ($s.properties | has($k) | not)
           then $value[$k] | check($file; $s.additionalProperties; "\($path).\($k)")
           elif $s.properties | has($k) then $value[$k] | check($file; $s.properties[$k]; "\($path).\($k)")
           else "\($path): \($k) is not declared" end)
      else empty end;

check($file; $all[$file]; "")
