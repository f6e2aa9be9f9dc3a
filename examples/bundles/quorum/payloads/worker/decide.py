import json
import os

import runstore

names = sorted(name for name in os.listdir(runstore.FOLDER) if name.startswith("sensor_"))
readings = []
for name in names:
    with open(runstore.path(name), encoding="utf-8") as file:
        readings.append(json.load(file)["celsius"])
result = {"sensors": len(readings), "celsius": sum(readings) / len(readings)}
runstore.finish(result, f"{result['celsius']} degrees")
print(json.dumps(result))
