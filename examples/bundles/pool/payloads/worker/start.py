print('{"go": true}')
