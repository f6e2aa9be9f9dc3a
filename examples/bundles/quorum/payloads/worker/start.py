print('{"read": "now"}')
